// The numbers of the capsule of the answer as sliders, and the image that they are drawn as.
const SHOWN_NUMBERS = 6;

function capsulePart(model, look) {
  const part = section("5. What the capsule of the answer knows", look.capsule ? ABOUT.sliders : ABOUT.none);
  if (!look.capsule) return part;
  const { poses, order, offsets } = look.capsule;
  const drawing = drawingOf(model, look);
  const sliders = order.map((dimension, place) => buildNumber(dimension, offsets, place >= SHOWN_NUMBERS));
  const write = () => sliders.forEach(({ slider, value, dimension }) => {
    value.textContent = (poses[look.winner][dimension] + Number(slider.value)).toFixed(2).replace(/^-(0\.00)$/, "$1");
  });
  const draw = (moved) => {
    if (drawing.movesOne) sliders.forEach((each) => { if (each !== moved) each.slider.value = 0; });
    write();
    const changed = poses.map((row) => [...row]);
    sliders.forEach(({ slider, dimension }) => { changed[look.winner][dimension] += Number(slider.value); });
    drawing.draw(changed, moved);
  };
  sliders.forEach((each) => each.slider.addEventListener("input", () => draw(each)));
  const reset = makeButton("Set back", () => {
    sliders.forEach(({ slider }) => { slider.value = 0; });
    draw(sliders[0]);
  });
  const all = makeButton("All " + order.length + " numbers", () => {
    sliders.forEach(({ line }) => { line.hidden = false; });
    sliders[SHOWN_NUMBERS].slider.focus(); // the button goes away, and would take the focus along
    all.hidden = true;
  });
  all.hidden = order.length <= SHOWN_NUMBERS;
  const compared = make("div", { className: "pair" },
    make("figure", {}, make("img", { src: look.picture, alt: "the image" }), make("figcaption", { textContent: "image" })),
    make("figure", {}, drawing.box, make("figcaption", { textContent: "drawn by the network" })));
  part.append(make("div", { className: "columns" }, compared,
    make("div", { className: "sliders" }, ...sliders.map(({ line }) => line), make("p", {}, reset, " ", all))));
  if (drawing.words) part.append(make("p", { textContent: drawing.words }));
  draw(sliders[0]);
  return part;
}

function buildNumber(dimension, offsets, hidden) {
  const slider = make("input", { type: "range", min: offsets[0], max: offsets[offsets.length - 1], step: 0.05, value: 0 });
  slider.dataset.dimension = dimension;
  slider.setAttribute("aria-label", "Number " + (dimension + 1));
  const value = make("output");
  return { line: make("label", { className: "slider", hidden }, "number " + (dimension + 1) + " ", slider, value), slider, value, dimension };
}

// Who draws: the server, the decoder inside the file, or a sheet of drawings made before.
function drawingOf(model, look) {
  if (DATA.live) return drawnByServer(model, look);
  return DATA.decoder ? drawnHere(look) : drawnBefore(look);
}

// One question at a time, and always the latest: the slider may move faster than the network draws.
function drawnByServer(model, look) {
  const box = make("img", { src: look.capsule.picture, alt: "what the network draws", className: "drawn" });
  let isAsking = false, next = null;
  const draw = async (poses) => {
    next = poses;
    if (isAsking) return;
    isAsking = true;
    try {
      while (next) {
        const sent = next;
        next = null;
        box.src = (await ask("reconstruct", { model: model.key, winner: look.winner, poses: sent })).picture;
      }
    } catch (error) {
      next = null;
      say(error.message);
    } finally {
      isAsking = false;
    }
  };
  let isFirst = true; // that drawing came with the answer
  return { box, draw: (poses) => { if (!isFirst) draw(poses); isFirst = false; } };
}

function drawnHere(look) {
  const box = make("canvas", { className: "drawn", role: "img" });
  box.setAttribute("aria-label", "what the network draws");
  return { box, words: DATA.decoder.words, draw: (poses) => drawDecoded(box, poses, look.winner) };
}

// One cell of the sheet of reconstructions: a row for each number, a column for each offset.
function drawnBefore(look) {
  const { offsets, sheet, poses } = look.capsule, rows = poses[look.winner].length;
  const box = make("div", { className: "drawn sheet", role: "img" });
  const draw = (_, { slider, dimension }) => {
    const column = offsets.findIndex((offset) => Math.abs(offset - Number(slider.value)) < 0.001);
    box.style.backgroundImage = `url(${sheet})`;
    box.style.backgroundSize = `${100 * offsets.length}% ${100 * rows}%`;
    box.style.backgroundPosition = `${100 * column / (offsets.length - 1)}% ${rows > 1 ? 100 * dimension / (rows - 1) : 0}%`;
  };
  return { box, draw, movesOne: true, words: "In this file, one number changes at a time: the decoder of this network is too large to be inside, or would draw otherwise if it were rounded." };
}
