// Every tree of the page that has no listeners yet: the script may stand after each of several.
function wakeTrees() {
  document.querySelectorAll(".tree:not([data-ready])").forEach(wakeTree);
}

function wakeTree(root) {
  root.dataset.ready = "";
  const facts = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const board = root.querySelector(".board svg");
  const panel = root.querySelector("aside");
  const quiet = [...panel.childNodes];
  let pinned = null; // the capsule that stays shown when the pointer leaves it

  const make = (tag, text, into) => {
    const made = document.createElement(tag);
    made.textContent = text;
    into.append(made);
    return made;
  };

  const showPatch = (box) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", box.join(" "));
    svg.append(board.querySelector("image").cloneNode());
    svg.firstChild.removeAttribute("transform");
    panel.append(svg);
  };

  // A frame around the same patch on the image itself.
  const framePatch = (box) => {
    board.querySelector(".seen")?.remove();
    if (!box) return;
    const frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const [x, y, width, height] = box;
    Object.entries({ x, y, width, height, class: "seen", transform: board.querySelector("image").getAttribute("transform") })
      .forEach(([name, value]) => frame.setAttribute(name, value));
    board.append(frame);
  };

  const showBar = (bar, even) => {
    const line = make(facts[bar.key] ? "button" : "div", "", panel);
    line.className = bar.leads ? "bar leads" : "bar";
    if (facts[bar.key]) {
      line.type = "button";
      line.addEventListener("click", () => pin(bar.key, true));
    }
    make("span", bar.name, line).title = bar.name;
    const track = make("b", "", line);
    if (even !== null) track.style.setProperty("--even", 100 * even + "%");
    else track.classList.add("plain");
    make("i", "", track).style.width = 100 * Math.min(1, Math.max(0, bar.value)) + "%";
    make("span", bar.value.toFixed(2), line);
  };

  // Couplings name their child and their parent.
  const couplings = [...root.querySelectorAll("path[data-of*=' ']")].map((path) => [path, ...path.dataset.of.split(" ")]);

  const light = (key) => {
    // The capsule, its children, all it leads to, and always the class that the tree explains.
    const above = new Set([key]);
    let size = 0;
    while (size < above.size) {
      size = above.size;
      couplings.forEach(([, child, parent]) => above.has(child) && above.add(parent));
    }
    const lit = new Set([...above, root.dataset.root]);
    root.querySelectorAll("[data-of]").forEach((part) =>
      part.classList.toggle("lit", part.dataset.of.split(" ").includes(key)));
    couplings.forEach(([path, child, parent]) => {
      path.classList.toggle("lit", above.has(child) || parent === key);
      if (parent === key) lit.add(child);
    });
    root.querySelectorAll("[data-key]").forEach((part) =>
      part.classList.toggle("lit", lit.has(part.dataset.key)));
  };

  const look = (key) => {
    const fact = facts[key];
    panel.replaceChildren();
    make("h3", fact.title, panel);
    make("p", fact.text, panel);
    if (fact.patch) showPatch(fact.patch);
    framePatch(fact.patch);
    if (fact.bars.length) make("p", fact.heading, panel);
    fact.bars.forEach((bar) => showBar(bar, fact.even));
    if (fact.below?.length) {
      make("p", "Couplings of its own children", panel);
      fact.below.forEach((bar) => showBar(bar, null));
    }
    if (key === pinned) make("p", "Kept: choose a line to follow it; Escape lets go.", panel);
    root.classList.add("looking");
    light(key);
  };

  const leave = () => {
    if (pinned) return look(pinned);
    root.classList.remove("looking");
    framePatch(null);
    panel.replaceChildren(...quiet);
  };

  const pin = (key, moves) => {
    pinned = pinned === key ? null : key;
    root.querySelectorAll(".node").forEach((node) => node.classList.toggle("pinned", node.dataset.key === pinned));
    look(key);
    if (moves) root.querySelector(`.node[data-key="${key}"]`).focus();
  };

  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !pinned) return;
    pin(pinned, false);
    leave();
  });
  root.querySelectorAll(".node").forEach((node) => {
    const key = node.dataset.key;
    node.addEventListener("pointerenter", () => look(key));
    node.addEventListener("focus", () => look(key));
    node.addEventListener("pointerleave", leave);
    node.addEventListener("blur", (event) => panel.contains(event.relatedTarget) || leave());
    node.addEventListener("click", () => pin(key, false));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pin(key, false);
    });
  });
}

wakeTrees();
