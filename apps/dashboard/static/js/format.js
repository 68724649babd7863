// Numbers and times as text, with their units.

const NONE = "–";

const figures = (value) => (Math.abs(value) >= 99.95 ? value.toFixed(0) : Math.abs(value) >= 9.995 ? value.toFixed(1) : value.toFixed(2));

function scaled(value, units) {
  let index = 0;
  let rest = value;
  while (Math.abs(rest) >= 999.5 && index < units.length - 1) {
    rest /= 1000;
    index += 1;
  }
  return `${index === 0 && Number.isInteger(rest) ? rest : figures(rest)} ${units[index]}`;
}

const known = (value) => value != null && Number.isFinite(value);

export const bps = (value) => (known(value) ? scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]) : NONE);
export const pps = (value) => (known(value) ? scaled(value, ["/s", "k/s", "M/s", "G/s"]) : NONE);

/** Percent; what is little is still told from nothing. */
export function pct(value) {
  if (!known(value)) return NONE;
  const isLittle = value > 0 && value < 0.095;
  return isLittle && value < 0.005 ? "< 0.01 %" : `${value.toFixed(isLittle ? 2 : 1)} %`;
}

export const count = (value) => (known(value) ? value.toLocaleString("en-GB").replaceAll(",", "\u202f") : NONE);
export const counted = (value, name) => `${count(value)} ${name}${value === 1 ? "" : "s"}`;
export const number = (value) => (known(value) ? figures(value) : NONE);
export const text = (value) => (value == null || value === "" ? NONE : String(value));
export const yes = (value) => (value == null ? NONE : value ? "yes" : "no");

const two = (value) => String(value).padStart(2, "0");

/** Epoch seconds as local time, with the date where it is not today. */
export function time(epoch_s, now = new Date()) {
  if (!known(epoch_s)) return NONE;
  const at = new Date(epoch_s * 1000);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const isToday = at.toDateString() === now.toDateString();
  return isToday ? clock : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

/** A span of seconds in its largest units. */
export function span(seconds) {
  if (!known(seconds)) return NONE;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.round(whole / 60)} min`;
  return whole < 172_800 ? `${Math.round(whole / 3600)} h` : `${Math.round(whole / 86_400)} d`;
}

/** A name as words for people: `rx_errors_pps` is "rx errors", `link-down` "link down". */
export const words = (name) => String(name).replace(/_(bps|pct|pps|s)$/, "").replace(/[_-]/g, " ");
