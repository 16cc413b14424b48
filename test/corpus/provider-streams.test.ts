/** Recorded streams of real providers: compared with the official SDKs, cut at any byte, broken off and damaged. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assemble, expectOneEnd } from "../support/decoding.ts";
import { cutAt, decodeBytes, toBytes, wireStyles } from "../support/wire-bytes.ts";
import { officialEssence } from "./official.ts";
import { recordings } from "./recordings.ts";

const RUNS = 25;

describe.each(recordings())("$name", ({ name, provider, payloads }) => {
  const places = fc.array(fc.nat(), { maxLength: 60 });

  test("gives the reply of the official SDK", async () => {
    const deltas = await decodeBytes(provider, [toBytes(payloads)]);
    expectOneEnd(deltas);
    const outcome = assemble(provider, deltas);
    const official = await officialEssence({ name, provider, payloads });
    if (official === undefined) return expect(outcome.ok).toBe(false);
    if (!outcome.ok) throw new Error(`${outcome.error.category}: ${outcome.error.message}`);
    const { text, toolCalls } = outcome.reply;
    const { inPieces, otherText, ...whole } = official;
    const calls = toolCalls.map((call) => ({ name: call.name, arguments: call.arguments }));
    expect(toolCalls.filter((call) => call.invalidArguments !== undefined)).toEqual([]);
    if (inPieces) expect(calls.map((call) => call.name)).toEqual(whole.calls.map((call) => call.name));
    else expect({ text: text === otherText ? whole.text : text, calls }).toEqual(whole);
  });

  test("gives the same deltas wherever its bytes are cut", async () => {
    const expected = await decodeBytes(provider, [toBytes(payloads)]);
    await fc.assert(
      fc.asyncProperty(wireStyles, places, async (style, places) => {
        expect(await decodeBytes(provider, cutAt(toBytes(payloads, style), places))).toEqual(expected);
      }),
      { numRuns: RUNS },
    );
  });

  test("ends with a finish or a typed error wherever it breaks off", async () => {
    const bytes = toBytes(payloads);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length), async (end) => {
        expectOneEnd(await decodeBytes(provider, [bytes.subarray(0, end)]));
      }),
      { numRuns: RUNS },
    );
  });

  test("ends with a finish or a typed error whatever byte is damaged", async () => {
    const bytes = toBytes(payloads);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(255), async (place, byte) => {
        const damaged = bytes.slice();
        damaged[place] = byte;
        expectOneEnd(await decodeBytes(provider, [damaged]));
      }),
      { numRuns: RUNS },
    );
  });
});
