/** Streams of every provider: cut at any byte, broken off at any byte, and with arbitrary payloads. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assemble, decode, expectOneEnd, outcomeOf, replyOf } from "../support/decoding.ts";
import { jsonValues } from "../support/json-values.ts";
import { REPLY_STREAMS, SAID } from "../support/reply-streams.ts";
import { cutAt, decodeBytes, toBytes, wireStyles } from "../support/wire-bytes.ts";

const places = fc.array(fc.nat(), { maxLength: 40 });

describe.each(REPLY_STREAMS)("a stream of $provider", ({ provider, payloads, complete }) => {
  test("is read completely", () => {
    expect(replyOf(provider, payloads)).toMatchObject(SAID);
  });

  test("gives the same deltas wherever its bytes are cut", async () => {
    const expected = decode(provider, payloads);
    await fc.assert(
      fc.asyncProperty(wireStyles, places, async (style, cuts) => {
        expect(await decodeBytes(provider, cutAt(toBytes(payloads, style), cuts))).toEqual(expected);
      }),
      { numRuns: 60 },
    );
    const bytes = toBytes(payloads, { newline: "\r\n", comments: true, bom: true });
    expect(await decodeBytes(provider, cutAt(bytes, [...bytes.keys()]))).toEqual(expected);
  });

  test("STREAM-1 STREAM-2 ends as a typed error if it breaks off before it is complete, and is complete if after", async () => {
    const bytes = toBytes(payloads);
    const decided = toBytes(payloads.slice(0, complete)).length - "\n\n".length;
    for (let length = 0; length <= bytes.length; length++) {
      const deltas = await decodeBytes(provider, [bytes.subarray(0, length)]);
      expectOneEnd(deltas);
      const outcome = assemble(provider, deltas);
      expect(outcome.ok).toBe(length >= decided);
      if (!outcome.ok)
        expect(outcome.error).toMatchObject({ category: "transient", retriable: true, provider });
    }
  });

  test("STREAM-2 STREAM-4 a payload that is not a JSON object is a typed error, and ends the reply", () => {
    const middle = Math.floor(complete / 2);
    const before = decode(provider, payloads.slice(0, middle)).slice(0, -1);
    for (const payload of ["not json", "{", "null", "[1]", "3"]) {
      const deltas = decode(provider, [...payloads.slice(0, middle), payload, ...payloads.slice(middle)]);
      const error = expect.objectContaining({ category: "transient", retriable: true });
      expect(deltas).toEqual([...before, { type: "error", error }]);
    }
  });

  test("STREAM-3 later payloads cannot spoil a complete reply", () => {
    for (const late of [
      "garbage",
      { error: "late" },
      { type: "error", error: { message: "late" } },
      "[DONE]",
    ]) {
      const outcome = outcomeOf(provider, [...payloads.slice(0, complete), late]);
      expect(outcome).toEqual(outcomeOf(provider, payloads.slice(0, complete)));
    }
  });

  test("STREAM-1 STREAM-4 any payloads at all give deltas that end in one finish or one error", () => {
    const payload = fc.oneof(jsonValues(), fc.constantFrom(...payloads), fc.string());
    fc.assert(fc.property(fc.array(payload), (given) => expectOneEnd(decode(provider, given))));
  });
});
