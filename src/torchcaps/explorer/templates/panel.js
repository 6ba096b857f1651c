// What one network says of one image.
const ABOUT = {
  where: "Warm colours mark what counted for the answer.",
  capsules: "Warm where active capsules give their vote to the answer.",
  cover: "Warm where the answer loses most when that place is covered. Found by trying.",
  sliders: "The capsule of the answer holds these numbers. Move them and see which image the network would draw.",
  rounds: "Votes are given in rounds: in each, a capsule gives more to those above that agree with it. Step back to see how the tree came about.",
  none: "This network has no decoder, so it cannot draw what its capsule holds.",
};

function section(title, about, ...children) {
  return make("section", {}, make("h2", { textContent: title }), make("p", { textContent: about }), ...children);
}

function buildPanel(model, image, look) {
  const parts = [answerPart(model, look), wherePart(model, image, look), treePart(model, image, look), capsulePart(model, look),
    typicalPart(model, image, look)];
  const panel = make("article", { className: "panel" }, ...parts);
  panel.setAttribute("aria-label", model.title);
  return panel;
}

function answerPart(model, look) {
  const bars = look.classes.map((each) => makeBar(each.name, each.value, each.value.toFixed(2)));
  bars[0].classList.add("first");
  const longest = Math.max(...look.classes.map((each) => each.name.length));
  const list = make("div", { className: "bars" }, ...bars);
  list.style.setProperty("--names", Math.min(longest, 14) + 1 + "ch");
  const more = look.more_classes ? [make("p", { textContent: "and " + look.more_classes + " less active classes" })] : [];
  const seen = make("figure", {}, make("img", { src: look.picture, alt: "what the network sees" }),
    make("figcaption", { textContent: "What the network sees: " + look.prepared + "." }));
  const part = section("2. The answer", model.title);
  find("p", part).className = "model";
  part.className = "answer";
  part.append(make("p", { className: "verdict", textContent: look.answer }), make("p", { className: "words", textContent: look.words }),
    make("div", { className: "columns" }, seen, make("div", {}, list, ...more)));
  return part;
}

function wherePart(model, image, look) {
  const heat = make("img", { className: "heat", alt: "" });
  const words = make("p", { className: "words" });
  const stack = make("div", { className: "stack" }, make("img", { src: look.picture, alt: "the image" }), heat);
  let shown = "";
  const show = async (way) => {
    shown = way;
    words.textContent = ABOUT[way];
    if (way === "capsules") {
      heat.src = look.heat;
      return;
    }
    try {
      for (let done = false; !done && shown === way && (part.isConnected || !heat.src);) { // the map grows place by place
        const answer = await ask("cover", { model: model.key, image, winner: look.winner });
        done = answer.done;
        if (shown !== way) continue;
        heat.src = answer.heat;
        if (done) words.textContent = ABOUT.cover + " " + answer.words;
      }
    } catch (error) {
      words.textContent = error.message;
    }
  };
  const part = section("3. Where it looked", ABOUT.where);
  if (look.heat) {
    const buttons = [["capsules", "Votes of capsules"], ["cover", "Covering test"]].map(([way, title]) => {
      const button = makeButton(title, () => {
        buttons.forEach((each) => each.setAttribute("aria-pressed", each === button));
        show(way);
      });
      button.setAttribute("aria-pressed", way === "capsules");
      return button;
    });
    part.append(make("div", { className: "ways" }, ...buttons));
  }
  part.append(stack, words);
  show(look.heat ? "capsules" : "cover").then(() => {
    if (!look.heat && look.last) words.textContent += " Each capsule of this network sees the whole image.";
  });
  return part;
}

function treePart(model, image, look) {
  const part = section("4. How parts led to the answer", look.reading);
  part.className = "tree-part";
  if (!look.last) {
    part.append(make("p", { className: "words", textContent: "There is no tree: " + look.obstacle }));
    return part;
  }
  const holder = make("div"), words = make("p", { className: "words" }), steps = make("div");
  const show = (round) => {
    holder.innerHTML = round.tree; // made by the program, with every name escaped
    holder.querySelectorAll(".tree").forEach(wakeTree);
    words.textContent = round.words;
    centre(find(".board", holder));
  };
  part.append(steps, words, holder);
  show(look.last);
  if (look.last.number > 1) {
    steps.append(make("p", { textContent: ABOUT.rounds }));
    addRounds(steps, model, image, look, show);
  }
  return part;
}

// The network answers anew for each earlier round, so they come after the answer.
async function addRounds(steps, model, image, look, show) {
  await new Promise(requestAnimationFrame);
  try {
    const { earlier } = await ask("rounds", { model: model.key, image, winner: look.winner });
    const rounds = [...earlier, look.last], last = rounds.length - 1;
    const shown = make("output");
    const slider = make("input", { type: "range", min: 0, max: last, step: 1, value: last });
    slider.setAttribute("aria-label", "Rounds of routing");
    const write = () => { shown.textContent = "round " + rounds[slider.value].number + " of " + look.last.number; };
    slider.addEventListener("input", () => { write(); show(rounds[slider.value]); });
    write();
    steps.append(make("label", { className: "rounds" }, "Rounds of routing ", slider, shown), sharpening(rounds));
  } catch (error) {
    steps.append(make("p", { className: "words", textContent: error.message }));
  }
}

// A tree that is wider than the screen begins in its middle, where the image is, if it is read upwards.
function centre(board) {
  requestAnimationFrame(() => {
    const image = find("image", board).getBoundingClientRect(), box = board.getBoundingClientRect();
    board.scrollLeft += image.left + image.width / 2 - box.left - box.width / 2;
  });
}

// How far from even after each round, as bars.
function sharpening(rounds) {
  const bars = rounds.map(({ number, distance }) => makeBar("round " + number, distance, distance.toFixed(3)));
  return make("div", { className: "sharpening" }, ...bars);
}

function typicalPart(model, image, look) {
  const words = make("p", { className: "words", textContent: "Reading images to compare with …" });
  const nearest = make("div", { className: "nearest" });
  const part = section("6. Is this usual?", "The tree of this image beside those of other images.", words, nearest);
  const ready = async () => {
    const found = await ask("typical", { model: model.key, image });
    if (found.state === "computing") {
      words.textContent = "The trees of other images are still being computed, once for this network …";
      if (part.isConnected) setTimeout(() => ready().catch((error) => { words.textContent = error.message; }), 700);
      return;
    }
    words.textContent = found.words;
    if (!found.nearest?.length) return;
    nearest.append(...found.nearest.map((each) => make("figure", {}, make("img", { src: each.picture, alt: each.label }),
      make("figcaption", { textContent: each.label + ": " + each.words }))));
    part.insertBefore(make("p", { textContent: "Images with the most similar trees:" }), nearest);
  };
  setTimeout(() => ready().catch((error) => { words.textContent = error.message; }), 0);
  return part;
}
