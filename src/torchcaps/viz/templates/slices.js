"use strict";
const { slices, marks } = JSON.parse(document.getElementById("data").textContent);
const [image, mask, ring, caption, place, shown] = ["slice", "mask", "ring", "caption", "place", "shown"].map((id) =>
  document.getElementById(id));
const lines = [...document.querySelectorAll("tr[data-finding]")];
let picked = -1;

const show = (position) => {
  const at = Math.max(0, Math.min(slices.length - 1, position));
  const slice = slices[at];
  place.value = at;
  image.src = slice.image;
  image.alt = "slice " + slice.number;
  mask.hidden = !slice.mask || !shown.checked;
  if (slice.mask) mask.src = slice.mask;
  caption.textContent = "slice " + slice.number + (slice.caption ? ", " + slice.caption : "");
  const mark = marks[picked];
  ring.hidden = !mark || mark.slice !== slice.number || !shown.checked;
  if (mark) [ring.style.left, ring.style.top] = [100 * mark.x + "%", 100 * mark.y + "%"];
};

// The slice of a finding; where the page does not hold it, the nearest that it holds.
const pick = (number) => {
  if (!marks.length) return;
  picked = (number + marks.length) % marks.length;
  lines.forEach((line, at) => line.classList.toggle("picked", at === picked));
  lines[picked].scrollIntoView({ block: "nearest" });
  const away = slices.map((slice) => Math.abs(slice.number - marks[picked].slice));
  show(away.indexOf(Math.min(...away)));
};

const at = () => Number(place.value);
const keys = {
  ArrowUp: () => show(at() - 1), ArrowLeft: () => show(at() - 1),
  ArrowDown: () => show(at() + 1), ArrowRight: () => show(at() + 1),
  PageUp: () => show(at() - 10), PageDown: () => show(at() + 10),
  Home: () => show(0), End: () => show(slices.length - 1),
  m: () => { shown.checked = !shown.checked; show(at()); },
  n: () => pick(picked + 1), p: () => pick(picked < 0 ? 0 : picked - 1),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});
document.querySelector("figure").addEventListener("wheel", (event) => {
  event.preventDefault();
  show(at() + Math.sign(event.deltaY));
}, { passive: false });
place.addEventListener("input", () => show(at()));
shown.addEventListener("change", () => show(at()));
lines.forEach((line, number) => {
  line.addEventListener("click", () => pick(number));
  line.addEventListener("keydown", (event) => { if (event.key === "Enter") pick(number); });
});
if (marks.length) pick(0); else show(Math.floor(slices.length / 2));
