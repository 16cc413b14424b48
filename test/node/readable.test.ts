/** Readable texts for amounts and dates, and fields of times. */
import { describe, expect, it } from "vitest";
import { readableMembers } from "../../app/src/readable.ts";
import { answerOf, errorsAt, inputFields } from "../../app/src/runs/gate-form.ts";

describe("the input of a request", () => {
  const texts = (input: unknown) =>
    readableMembers(input, "en-US").members.map(({ label, text }) => `${label}: ${text}`);

  it("I1 has amounts with their currency, large numbers and dates as text", () => {
    const input = { currency: "usd", totalPrice: 1234.5, count: 12, units: 1_200_000, dueOn: "2031-03-04" };
    expect(texts(input)).toEqual([
      "Total price: $1,234.50",
      "Units: 1,200,000",
      "Due on: Tuesday, March 4, 2031",
    ]);
    expect(texts({ order: { amount: 0.1 + 0.2, currency: "EUR" } })).toEqual([
      "Order · Amount: €0.30000000000000004",
    ]);
  });

  it("I1 leaves the rest to the exact JSON", () => {
    const input = { currency: "euro", amount: 5, list: [1_000_000], text: "2031" };
    expect(texts(input)).toEqual([]);
    expect(texts([1_000_000])).toEqual([]);
    expect(texts(null)).toEqual([]);
  });

  it("I1 shows dates that no calendar has as they are", () => {
    const times = ["2026-02-30", "2031-13-40", "2026-02-30T10:00:00Z", "2026-02-28T25:00:00Z"];
    for (const at of times) expect(texts({ at })).toEqual([`At: ${at}`]);
  });

  it("I1 counts the amounts and dates that it leaves out: after many others, in arrays and in deep objects", () => {
    const more = (input: unknown) => readableMembers(input, "en-US").more;
    const decoys = Object.fromEntries(Array.from({ length: 13 }, (_, index) => [`x${index}`, 1_000 + index]));
    expect([texts({ ...decoys, amount: 9e9 }).length, more({ ...decoys, amount: 9e9 })]).toEqual([12, 2]);
    expect(more({ payments: [{ amount: 5, currency: "EUR" }, 1_000, 1] })).toBe(2);
    expect(more({ a: { b: { c: { due: "2031-03-04" } } } })).toBe(1);
    expect(more([1_000_000])).toBe(1);
    expect(more({ a: { b: { due: "2031-03-04" } }, small: 1 })).toBe(0);
  });
});

describe("the form of an input", () => {
  const fields = inputFields({
    type: "object",
    properties: { name: { type: "string" }, at: { type: "string", format: "date-time" } },
    required: ["at"],
  });

  it("I1 takes a time in the reader's zone, and puts the errors of the server at their fields", () => {
    expect(fields.map(({ pointer, kind, isRequired }) => [pointer, kind, isRequired])).toEqual([
      ["/name", "text", false],
      ["/at", "time", true],
    ]);
    const at = new Date(2031, 2, 4, 9, 30).toISOString();
    expect(answerOf(fields, { "/at": "2031-03-04T09:30" })).toEqual({ answer: { at } });
    const issues = [{ path: "/input/name", message: "Too long." }];
    expect(errorsAt(fields, issues, "/input")).toEqual(new Map([["/name", "Too long."]]));
  });
});
