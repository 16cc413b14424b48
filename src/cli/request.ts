/** Requests of operations that have no function in the client. */
import { errorFromResponse, noAnswer } from "../client/errors.ts";
import { authorization } from "../client/requests.ts";
import type { Cli } from "./command.ts";

export function requester(url: string, token: string | undefined, signal: AbortSignal): Cli["request"] {
  return async (method, path, { accept = "application/json", body } = {}) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const headers = { accept, ...(await authorization(token)), ...type };
    const response = await fetch(url + path, {
      method,
      headers,
      signal,
      ...(body !== undefined && { body }),
    }).catch((cause: unknown) => {
      throw noAnswer(cause, signal);
    });
    if (!response.ok) throw await errorFromResponse(response);
    return response;
  };
}
