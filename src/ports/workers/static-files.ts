/** The static files that are served beside a Worker. */

/** Returns a file's bytes, or `null` if the Worker has no such file. Throws if the platform does not answer. */
export async function staticFile(files: Fetcher, name: string): Promise<ArrayBuffer | null> {
  // The host is not used: a binding of static files looks at the path alone.
  const response = await files.fetch(`https://files.invalid/${name}`);
  if (response.status >= 500)
    throw new Error(`The static file ${name} was answered with ${response.status}.`);
  if (response.ok) return response.arrayBuffer();
  await response.body?.cancel();
  return null;
}
