/** External results: the messages for malformed results. */
import { expect, test } from "vitest";
import { outcomeSchema } from "../../src/protocol/requests.ts";
import { validate } from "../../src/shared/validation.ts";

test.each(["no", 7, null, ["no"]])("an error that is %j gets the form to send", (error) => {
  expect(() => validate(outcomeSchema, { error })).toThrow(
    '/error: Must be an object with a message, as in `{"error": {"message": "Out of stock."}}`.',
  );
});

test("issues within an error keep their places", () => {
  expect(() => validate(outcomeSchema, { error: {} })).toThrow("/error/message: Is required.");
  expect(() => validate(outcomeSchema, { error: { message: "No.", reason: 1 } })).toThrow(
    "/error/reason: Unknown field.",
  );
});
