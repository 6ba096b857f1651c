const facts = JSON.parse(document.getElementById("facts").textContent);
const flight = document.querySelector(".flight");
const find = (selector) => flight.querySelector(selector);
const slider = find("input"), button = find("button"), shown = Object.keys(facts.beliefs).map(Number);
const points = (places) => places.filter(Boolean).map((place) => place.map((part) => 1000 * part).join(",")).join(" ");
const at = (place) => place.map((part) => 1000 * part).join(" ");
const steps = (last, isFound) => facts.estimates.slice(1, last + 1).map((place, k) =>
  facts.converged[k + 1] === isFound ? "M" + at(facts.estimates[k]) + "L" + at(place) : "").join("");
let timer = null;

function show(number) {
  slider.value = number;
  find(".path").setAttribute("d", steps(number, true));
  find(".unsure").setAttribute("d", steps(number, false));
  find(".true").setAttribute("points", points(facts.truth.slice(0, number + 1)));
  const [x, y] = facts.estimates[number], sigma = facts.sigmas[number], circle = find("ellipse");
  const numbers = { cx: 1000 * x, cy: 1000 * y, rx: (1000 * sigma) / facts.metres[0], ry: (1000 * sigma) / facts.metres[1] };
  for (const [name, value] of Object.entries(numbers)) circle.setAttribute(name, value);
  const before = shown.filter((each) => each <= number);
  if (before.length) find(".belief").src = facts.beliefs[Math.max(...before)];
  const error = facts.errors[number];
  find("output").textContent = "update " + (number + 1) + " of " + facts.estimates.length + ", spread " + sigma.toFixed(0) +
    " m" + (facts.converged[number] ? "" : " (not converged)") + (error === null ? "" : ", error " + error.toFixed(0) + " m");
  find(".words").textContent = facts.words[number];
}

function stop() {
  clearInterval(timer);
  timer = null;
  button.textContent = "Play";
}

button.addEventListener("click", () => {
  if (timer !== null) return stop();
  if (Number(slider.value) === facts.estimates.length - 1) show(0);
  button.textContent = "Pause";
  timer = setInterval(() => {
    const next = Number(slider.value) + 1;
    if (next >= facts.estimates.length) stop();
    else show(next);
  }, 150);
});
slider.max = facts.estimates.length - 1;
slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
show(facts.estimates.length - 1);
