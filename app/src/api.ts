/** Requests to routes that the client library leaves out: libraries and triggers. */
import { errorFromResponse, noAnswer } from "../../src/client/errors.ts";
import { signedFetch } from "./session.ts";

/** Sends a request to a path below `/api`, and returns the JSON of its answer. Throws `DramatisClientError`. */
export async function callApi<Value>(path: string, init: RequestInit = {}): Promise<Value> {
  const response = await signedFetch(`/api/${path}`, init).catch((cause: unknown) => {
    throw noAnswer(cause, init.signal ?? undefined);
  });
  if (!response.ok) throw await errorFromResponse(response);
  // SAFETY: the API's description types its answers.
  return (await response.json()) as Value;
}

/** The options of a request with a body in JSON. */
export function withJson(method: "POST" | "PATCH", body: unknown): RequestInit {
  return { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } };
}
