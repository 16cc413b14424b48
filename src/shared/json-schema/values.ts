/** Comparisons of JSON values for a check, which spend their steps. Pure. */
import { canonicalJson, isJsonObject, type Json } from "../json.ts";
import type { Meter } from "./meter.ts";

/** Characters to compare or copy per step. */
export const CHARACTERS_PER_STEP = 8;
/** Steps of dividing two decimals, and of two decimals beyond exact integers. */
const [DECIMALS, LARGE_DECIMALS] = [20, 60];

/** Compares two values. Stops at the first difference. */
export function areEqual(one: Json, other: Json, meter: Meter): boolean {
  meter.spend(1);
  if (typeof one === "string" && typeof other === "string") {
    if (one.length !== other.length) return false;
    meter.spend(one.length / CHARACTERS_PER_STEP);
    return one === other;
  }
  if (Array.isArray(one))
    return (
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, index) => areEqual(item, other[index] ?? null, meter))
    );
  if (!isJsonObject(one)) return one === other;
  if (!isJsonObject(other)) return false;
  const names = Object.keys(one);
  meter.spend(names.length + Object.keys(other).length);
  return (
    names.length === Object.keys(other).length &&
    names.every(
      (name) => Object.hasOwn(other, name) && areEqual(one[name] ?? null, other[name] ?? null, meter),
    )
  );
}

/** Returns the indexes of two equal items, or `null`. Takes `n log n` steps, not one for each pair. */
export function duplicates(items: readonly Json[], meter: Meter): [number, number] | null {
  for (const item of items) spendOn(item, meter);
  const texts = items.map((item, index) => ({ text: canonicalJson(item), index }));
  meter.spend(items.length * Math.ceil(Math.log2(items.length + 1)));
  texts.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : a.index - b.index));
  for (const [at, { text, index }] of texts.entries()) {
    const next = texts[at + 1];
    if (next?.text === text) return [index, next.index];
  }
  return null;
}

/** Spends the steps of writing a value as canonical JSON and comparing it some times. */
function spendOn(value: Json, meter: Meter): void {
  meter.spend(10);
  if (typeof value === "string") meter.spend(value.length / 2);
  else if (typeof value === "object" && value !== null)
    for (const [name, member] of Object.entries(value)) {
      meter.spend(name.length);
      spendOn(member, meter);
    }
}

/** Reports whether a number is a multiple of another, as decimals. Numbers beyond the range of a double are never multiples. */
export function isMultipleOf(value: number, divisor: number, meter: Meter): boolean {
  meter.spend(1);
  if (!Number.isFinite(value) || !Number.isFinite(divisor)) return false;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0;
  meter.spend(DECIMALS);
  const [digits, exponent] = decimal(value);
  const [divisorDigits, divisorExponent] = decimal(divisor);
  const lowest = Math.min(exponent, divisorExponent);
  const units = Number(digits) * 10 ** (exponent - lowest);
  const divisorUnits = Number(divisorDigits) * 10 ** (divisorExponent - lowest);
  if (Number.isSafeInteger(units) && Number.isSafeInteger(divisorUnits)) return units % divisorUnits === 0;
  meter.spend(LARGE_DECIMALS + (Math.max(exponent, divisorExponent) - lowest) / 2);
  const large = BigInt(digits) * 10n ** BigInt(exponent - lowest);
  return large % (BigInt(divisorDigits) * 10n ** BigInt(divisorExponent - lowest)) === 0n;
}

/** Returns a number's digits as a whole number, and the power of ten of its last digit. */
function decimal(value: number): [digits: string, exponent: number] {
  const [digits = "0", exponent = "0"] = String(Math.abs(value)).split("e");
  const [, fraction = ""] = digits.split(".");
  return [digits.replace(".", ""), Number(exponent) - fraction.length];
}
