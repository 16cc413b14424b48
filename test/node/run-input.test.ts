/** The input of runs. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkedRunInput } from "../../src/library/workflows/run-input.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";

describe("RUNINPUT-1 the input of a run", () => {
  const line = {
    type: "object",
    properties: { "a/b": { type: "integer", default: 1 } },
    additionalProperties: false,
  };
  const inputSchema: JsonObject = {
    type: "object",
    properties: { id: { type: "string" }, lines: { type: "array", items: line }, mode: { default: "fast" } },
    required: ["id"],
  };

  test("has its defaults, and given values stay unchanged", () => {
    const given = { id: "x", lines: [{}, { "a/b": 2 }] };
    const before = structuredClone(given);
    const checked = checkedRunInput({ inputSchema }, given);
    expect(checked).toEqual({ id: "x", lines: [{ "a/b": 1 }, { "a/b": 2 }], mode: "fast" });
    expect(given).toEqual(before);
    expect(checkedRunInput({ inputSchema }, checked)).toEqual(checked);
  });

  test.each<[string, Json, string]>([
    ["no object", [1], ""],
    ["null", null, ""],
    ["a missing member", {}, "/id"],
    ["a wrong member", { id: 1 }, "/id"],
    ["a wrong member of an item", { id: "x", lines: [{}, { "a/b": "2" }] }, "/lines/1/a~1b"],
  ])("%s has its place", (_, value, path) => {
    for (const base of ["", "/input"])
      expect(() => checkedRunInput({ inputSchema }, value, base)).toThrow(
        expect.objectContaining({
          code: "INVALID_INPUT",
          message: expect.stringMatching(/^The input of the run is not valid: /),
          options: { errors: expect.arrayContaining([{ path: base + path, message: expect.any(String) }]) },
        }),
      );
  });

  test("that is too large to be filled in or checked has a place, too", () => {
    const lines = (count: number) => ({ id: "x", lines: Array.from({ length: count }, () => ({})) });
    for (const count of [9_000, 100_000])
      expect(() => checkedRunInput({ inputSchema }, lines(count), "/input")).toThrow(
        expect.objectContaining({
          code: "INVALID_INPUT",
          options: { errors: [{ path: "/input", message: expect.stringMatching(/too large/) }] },
        }),
      );
  });

  test("fits the schema afterwards, or is refused", () => {
    const values = fc.record(
      {
        id: fc.oneof(fc.string(), fc.integer()),
        lines: fc.array(fc.record({ "a/b": fc.oneof(fc.integer(), fc.string()) }, { requiredKeys: [] })),
        mode: fc.string(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(values, (value) => {
        const lines = value.lines ?? [];
        const fits =
          typeof value.id === "string" && lines.every((one) => typeof (one["a/b"] ?? 1) === "number");
        const check = () => checkedRunInput({ inputSchema }, value as Json);
        if (!fits) expect(check).toThrow(DramatisError);
        else
          expect(check()).toEqual({
            mode: "fast",
            ...value,
            ...(value.lines && { lines: lines.map((one) => ({ "a/b": 1, ...one })) }),
          });
      }),
    );
  });
});
