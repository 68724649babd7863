// Utilisation as colour and width. Colours come from the style sheet, for light and dark.

/** Steps of utilisation: `from_pct` inclusive, and the width of the line in px. */
export const STEPS = [
  {from_pct: 0, width: 1, label: "below 1 %"},
  {from_pct: 1, width: 1.6, label: "1 to 20 %"},
  {from_pct: 20, width: 2.3, label: "20 to 40 %"},
  {from_pct: 40, width: 3.1, label: "40 to 60 %"},
  {from_pct: 60, width: 4.1, label: "60 to 80 %"},
  {from_pct: 80, width: 5.4, label: "80 % and more"},
];

/** The index of a utilisation's step, -1 where it is not known. */
export function stepOf(utilisation_pct) {
  if (utilisation_pct == null || Number.isNaN(utilisation_pct)) return -1;
  let step = 0;
  while (step + 1 < STEPS.length && utilisation_pct >= STEPS[step + 1].from_pct) step += 1;
  return step;
}
