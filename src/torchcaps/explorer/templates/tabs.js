// The tabs: the explorer first, then what folders hold, or the command that makes something to show.
function setUpTabs() {
  const bar = find("nav");
  const pages = [{ title: "Images", page: find("#explore") }, ...DATA.tabs.map((tab) => ({ title: tab.title, page: buildTab(tab) }))];
  bar.hidden = pages.length < 2;
  const buttons = pages.map(({ title, page }, number) => {
    page.id = page.id || "tab-" + number;
    page.setAttribute("role", "tabpanel");
    const button = makeButton(title, () => show(number));
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", page.id);
    bar.append(button);
    find("#pages").append(page);
    return button;
  });
  const show = (number) => {
    buttons.forEach((button, each) => {
      button.setAttribute("aria-selected", each === number);
      button.tabIndex = each === number ? 0 : -1;
      pages[each].page.hidden = each !== number;
    });
    pages[number].page.dispatchEvent(new Event("shown"));
  };
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
    show(next);
    buttons[next].focus();
  });
  show(0);
}

function buildTab(tab) {
  const page = make("div", {}, make("section", {}, make("h2", { textContent: tab.title }), make("p", { textContent: tab.about })));
  const body = find("section", page);
  if (!tab.items.length) {
    body.append(make("p", { textContent: "There is nothing to show yet." }));
    if (tab.install) body.append(make("p", { textContent: "First install what it needs:" }), make("pre", { textContent: tab.install }));
    body.append(make("p", { textContent: "This makes something to show:" }), make("pre", { textContent: tab.command }),
      make("p", { textContent: "Then start the page with it:" }), make("pre", { textContent: "torchcaps app " + tab.out }));
    return page;
  }
  const choice = make("select", {}, ...tab.items.map((name, number) => make("option", { value: number, textContent: name })));
  choice.setAttribute("aria-label", "Which one");
  const content = make("div");
  body.append(tab.items.length < 2 ? make("p", { textContent: "Shown: " + tab.items[0] }) : choice, content);
  const builders = { pose: buildTurning, parts: buildTrees };
  const show = () => content.replaceChildren((builders[tab.kind] ?? buildFrame)(Number(choice.value), tab));
  choice.addEventListener("change", show);
  page.addEventListener("shown", () => content.childElementCount || show());
  return page;
}

function buildFrame(item, tab) {
  const frame = make("iframe", { src: "/folder/" + tab.kind + "/" + item, title: tab.title + ": " + tab.items[item] });
  frame.setAttribute("sandbox", "allow-scripts"); // a page of its own, that cannot reach this one
  return frame;
}

// Buttons to the next and the previous image: `load` gets a number and gives what `show` shows.
function buildSteps(load, show) {
  let number = 0, total = 1, isLoading = false;
  const place = make("span", { textContent: "Opening …" });
  const kept = new Map(); // answers, or those on their way
  const get = (wanted) => {
    if (!kept.has(wanted)) kept.set(wanted, load(wanted).catch((error) => { kept.delete(wanted); throw error; }));
    return kept.get(wanted);
  };
  const write = (end) => { place.textContent = "image " + (number + 1) + " of " + total + end; };
  // One at a time, and always where the steps led to: those between are left out.
  const arrive = async () => {
    for (let mine = null; mine !== number;) {
      mine = number;
      const answer = await get(mine);
      if (mine !== number) continue;
      total = answer.total;
      show(answer);
    }
    write("");
    get((number + 1) % total).catch(() => {}); // the next is there before it is asked for
  };
  const go = async (step) => {
    number = (number + step + total) % total;
    if (total > 1) write(" …");
    if (isLoading) return;
    isLoading = true;
    try {
      await arrive();
    } catch (error) {
      place.textContent = error.message;
    } finally {
      isLoading = false;
    }
  };
  go(0);
  return make("p", { className: "steps" }, makeButton("Previous", () => go(-1)), makeButton("Next", () => go(1)), place);
}

function buildTrees(item) {
  const picture = make("img", { alt: "true and carved trees" });
  const about = make("p", { className: "words" }), words = make("p", { className: "words" });
  const steps = buildSteps((number) => ask("parts", { item, number }), (answer) => {
    picture.src = answer.picture;
    about.textContent = answer.about;
    words.textContent = answer.words;
  });
  return make("div", {}, about, steps, make("div", { className: "wide" }, picture), words);
}

function buildTurning(item) {
  const words = make("p", { className: "words" });
  const seen = make("img", { alt: "what the network sees" });
  const strips = ["true", "predicted"].map((name) => ({ name, box: make("div", { className: "frame", role: "img" }) }));
  strips.forEach(({ name, box }) => box.setAttribute("aria-label", "the object in its " + name + " turn"));
  const slider = make("input", { type: "range", min: 0, max: 11, value: 0 });
  slider.setAttribute("aria-label", "Turn the object");
  const turn = () => strips.forEach(({ box }) => { box.style.backgroundPosition = 100 * slider.value / slider.max + "% 0"; });
  slider.addEventListener("input", turn);
  const steps = buildSteps((number) => ask("pose", { item, number }), (answer) => {
    seen.src = answer.picture;
    words.textContent = answer.words;
    slider.max = answer.frames - 1;
    strips.forEach(({ name, box }) => {
      box.style.backgroundImage = `url(${answer[name]})`;
      box.style.backgroundSize = 100 * answer.frames + "% 100%";
    });
    turn();
  });
  const figures = [make("figure", {}, seen, make("figcaption", { textContent: "image" })),
    ...strips.map(({ name, box }) => make("figure", {}, box, make("figcaption", { textContent: name + " turn" })))];
  return make("div", {}, steps, words, make("div", { className: "turning" }, ...figures),
    make("label", { className: "rounds" }, "Turn both ", slider));
}
