// Numbers and times for people.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e7)) return value.toExponential(digits - 1);
  if (Math.abs(value) >= 10 ** digits) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${Math.max(seconds, 0).toFixed(1)} s`;
  const whole = Math.round(seconds);
  const first = UNITS.findIndex(([, size]) => whole >= size);
  const [unit, size] = UNITS[first];
  const big = Math.floor(whole / size);
  if (first === UNITS.length - 1 || big >= 100) return `${big.toLocaleString("en")} ${unit}`;
  const [nextUnit, nextSize] = UNITS[first + 1];
  const rest = Math.floor((whole % size) / nextSize);
  return rest ? `${big} ${unit} ${rest} ${nextUnit}` : `${big} ${unit}`;
}

export function percent(share) {
  return `${number(100 * share, share < 0.1 ? 2 : 3)} %`;
}

export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export function clock(seconds, withSeconds) {
  const shown = { hour: "2-digit", minute: "2-digit", hour12: false };
  if (withSeconds) shown.second = "2-digit";
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", shown);
}

export function day(seconds) {
  return new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}
