/** Reads of the libraries, which the client library leaves out. */
import { signedFetch } from "./session.ts";

/** Reads a path below `/api/libraries`. */
export async function readLibraries<Value>(path: string, signal: AbortSignal): Promise<Value> {
  const response = await signedFetch(`/api/libraries${path}`, { signal });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  // SAFETY: the API's description types its answers.
  return (await response.json()) as Value;
}
