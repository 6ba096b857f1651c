// The image: drawn, uploaded, or one of the dataset. `choose` is told each new one.
const WAYS = { draw: "Draw", upload: "Upload", examples: "Examples" };
const MOST_BYTES = 16 * 2 ** 20;

function setUpPicture(choose) {
  const ways = find(".ways");
  const show = (name) => {
    Object.keys(WAYS).forEach((each) => { find("#way-" + each).hidden = each !== name; });
    ways.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.way === name));
  };
  Object.entries(WAYS).forEach(([name, title]) => {
    if (!DATA.live && name !== "examples") return;
    const button = makeButton(title, () => show(name));
    button.dataset.way = name;
    ways.append(button);
  });
  ways.hidden = !DATA.live;
  show("examples");
  if (DATA.live) {
    setUpBoard(choose);
    setUpFile(choose);
  }
  return setUpExamples(choose);
}

function setUpBoard(choose) {
  const board = find("#way-draw canvas");
  const pen = board.getContext("2d");
  let isDown = false, isEmpty = true, waiting;
  const wipe = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, board.width, board.height);
    isEmpty = true;
  };
  const place = (event) => {
    const box = board.getBoundingClientRect();
    return [(event.clientX - box.left) * board.width / box.width, (event.clientY - box.top) * board.height / box.height];
  };
  const send = () => { if (!isEmpty) choose({ file: board.toDataURL("image/png").split(",")[1] }); };
  const later = () => { clearTimeout(waiting); waiting = setTimeout(send, 250); };
  board.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    board.setPointerCapture(event.pointerId);
    isDown = true;
    Object.assign(pen, { lineWidth: 20, lineCap: "round", lineJoin: "round", strokeStyle: "#1c2045" });
    pen.beginPath();
    pen.moveTo(...place(event));
    pen.lineTo(...place(event));
    pen.stroke();
    isEmpty = false;
  });
  board.addEventListener("pointermove", (event) => {
    if (!isDown) return;
    pen.lineTo(...place(event));
    pen.stroke();
    later();
  });
  ["pointerup", "pointercancel"].forEach((name) => board.addEventListener(name, () => {
    if (isDown) later();
    isDown = false;
  }));
  find("#clear").addEventListener("click", () => { clearTimeout(waiting); wipe(); say(""); });
  wipe();
}

function setUpFile(choose) {
  const zone = find(".drop"), input = find(".drop input");
  const send = (file) => {
    if (!file) return;
    if (file.size > MOST_BYTES) {
      say(file.name + " is larger than 16 MB: choose a smaller one.");
      return;
    }
    find("span", zone).textContent = "Chosen: " + file.name;
    const reader = new FileReader();
    reader.onload = () => choose({ file: reader.result.split(",")[1] || "" });
    reader.onerror = () => say("This file cannot be read.");
    reader.readAsDataURL(file);
  };
  input.addEventListener("change", () => { send(input.files[0]); input.value = ""; });
  zone.addEventListener("drop", (event) => send(event.dataTransfer.files[0]));
  // Beside the zone too: else the browser would leave the page and open the file.
  ["dragover", "drop"].forEach((name) => document.addEventListener(name, (event) => event.preventDefault()));
}

// Thumbnails; the answer shows those of another network, and takes the first if nothing was chosen yet.
function setUpExamples(choose) {
  const thumbs = find(".thumbs");
  let start = 0, owner = null;
  const load = async (takesFirst) => {
    const of = owner;
    const { items, next, words } = await ask("examples", { model: of, start });
    if (of !== owner) return; // another network was chosen meanwhile
    start = next;
    find("#source").textContent = words;
    thumbs.replaceChildren(...items.map((item) => {
      const button = make("button", { type: "button", title: item.label },
        make("img", { src: item.picture, alt: "Image " + item.number + ", " + item.label }));
      button.addEventListener("click", () => {
        thumbs.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", each === button));
        choose({ example: item.number, of: button.dataset.of });
      });
      button.dataset.of = of;
      return button;
    }));
    find("#more").hidden = !DATA.live;
    if (takesFirst) find("button", thumbs)?.click();
  };
  find("#more").addEventListener("click", () => load(false).catch((error) => say(error.message)));
  return async (model, takesFirst) => {
    owner = model;
    start = 0;
    await load(takesFirst);
  };
}
