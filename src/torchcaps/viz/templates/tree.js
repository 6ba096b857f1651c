// Every tree of the page that has no listeners yet: the script may stand after each of several.
document.querySelectorAll(".tree:not([data-ready])").forEach((root) => {
  root.dataset.ready = "";
  const facts = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const panel = root.querySelector("aside");
  const quiet = [...panel.childNodes];

  const make = (tag, text, into) => {
    const made = document.createElement(tag);
    made.textContent = text;
    into.append(made);
    return made;
  };

  const showPatch = (box) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", box.join(" "));
    svg.append(root.querySelector("image").cloneNode());
    svg.firstChild.removeAttribute("transform");
    panel.append(svg);
  };

  const showBar = (bar, even) => {
    const line = make("div", "", panel);
    line.className = bar.leads ? "bar leads" : "bar";
    make("span", bar.name, line).title = bar.name;
    const track = make("b", "", line);
    track.style.setProperty("--even", 100 * even + "%");
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
    if (fact.bars.length) make("p", fact.heading + "; the mark is an even share, " + fact.even.toFixed(3) + ".", panel);
    fact.bars.forEach((bar) => showBar(bar, fact.even));
    root.classList.add("looking");
    light(key);
  };

  const leave = () => {
    root.classList.remove("looking");
    panel.replaceChildren(...quiet);
  };

  root.querySelectorAll(".node").forEach((node) => {
    node.addEventListener("pointerenter", () => look(node.dataset.key));
    node.addEventListener("focus", () => look(node.dataset.key));
    node.addEventListener("pointerleave", leave);
    node.addEventListener("blur", leave);
  });
});
