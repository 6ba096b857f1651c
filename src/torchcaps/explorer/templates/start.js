// Put together: networks to choose from, an image, and a panel for each network.
let chosen = null; // the image
let turn = 0; // answers to an earlier question are thrown away
let later; // the question that waits

function asked() {
  const keys = [find("#model").value, find("#second").value].filter((key) => key !== "");
  return [...new Set(keys)].map((key) => DATA.models.find((model) => model.key === key));
}

// At once, or a moment later while an answer is awaited: quick choices become one question.
function update() {
  clearTimeout(later);
  if (document.body.classList.contains("asking")) later = setTimeout(askNetworks, 150);
  else askNetworks();
}

async function askNetworks() {
  if (!chosen) return;
  const mine = ++turn, image = chosen, models = asked();
  document.body.classList.add("asking");
  setTimeout(() => { if (mine === turn && document.body.classList.contains("asking")) find("#waiting").hidden = false; }, 400);
  try {
    const looks = await Promise.all(models.map((model) => ask("look", { model: model.key, image })));
    if (mine !== turn) return;
    say("");
    const panels = find("#panels");
    panels.className = models.length > 1 ? "compare" : "";
    find("#rem").hidden = !models.some((model) => model.rem);
    find("#spoken").textContent = looks.map((look) => look.words).join(" ");
    find("#short").hidden = false;
    find("#short b").textContent = [...new Set(looks.map((look) => look.answer))].join(" or ");
    panels.replaceChildren(...looks.map((look, place) => buildPanel(models[place], image, look)));
    panels.hidden = false;
  } catch (error) {
    if (mine === turn) {
      say(error.message);
      find("#panels").hidden = find("#short").hidden = true; // an answer to another image
      find("#spoken").textContent = "";
    }
  } finally {
    if (mine === turn) {
      document.body.classList.remove("asking");
      find("#waiting").hidden = true;
    }
  }
}

// Whether a network may be asked about the image: an example of digits says little about one that reads clothes.
function suits(key) {
  if (!chosen || "file" in chosen) return true;
  const picturesOf = (wanted) => DATA.models.find((model) => model.key === wanted).pictures;
  return picturesOf(chosen.of) === picturesOf(key);
}

function choose(image) {
  chosen = image;
  update();
}

function start() {
  if (DATA.live) history.replaceState(null, "", "/"); // the token is in a cookie now, and not in the address
  const options = () => DATA.models.map((model) => make("option", { value: model.key, textContent: model.title }));
  find("#model").append(...options());
  find("#second").append(make("option", { value: "", textContent: "no other" }), ...options());
  if (DATA.compare) find("#second").value = DATA.models[1].key;
  if (!DATA.live) {
    find(".lead").textContent = "What a network answers for these images, where it looked, and how small parts led to the whole.";
    find("#picture h2").textContent = "1. Choose an image";
    find("#model").parentElement.hidden = true;
  }
  find(".second").hidden = DATA.models.length < 2;
  const showExamples = setUpPicture(choose);
  const load = (takesFirst) => showExamples(find("#model").value, takesFirst).catch((error) => {
    find("#waiting").hidden = true;
    say(error.message);
  });
  find("#model").addEventListener("change", () => {
    if (!suits(find("#model").value)) {
      chosen = null; // the first of its own examples comes instead
      turn++;
      find("#waiting").hidden = false;
    }
    update();
    load(!chosen);
  });
  find("#second").addEventListener("change", update);
  setUpTabs();
  find("#waiting").hidden = false;
  load(true);
}

start();
