/** The static files that are served beside a Worker. */

/** Returns a file's bytes, or `null` if the Worker has no such file. Throws if the platform does not answer. */
export async function staticFile(files: Fetcher, name: string): Promise<ArrayBuffer | null> {
  // The host has no effect: a binding of static files reads only the path.
  const response = await files.fetch(`https://files.invalid/${name}`);
  if (response.status >= 500)
    throw new Error(`The request for the static file ${name} returned ${response.status}.`);
  if (response.ok) return response.arrayBuffer();
  await response.body?.cancel();
  return null;
}
