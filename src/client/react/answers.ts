/**
 * The requests that got their answer in this browser.
 *
 * SHARE-3  After an answer, every tab of the origin leaves the request out, also while the list of the server still has it.
 */

const CHANNEL = "dramatis-answers";

const answered = new Set<string>();
const listeners = new Set<() => void>();

export function isAnswered({ operationId }: { operationId: string }): boolean {
  return answered.has(operationId);
}

/** Tells the components of this tab, and other tabs, about an answer. */
export function announceAnswer(operationId: string): void {
  note(operationId);
  const channel = openChannel();
  channel?.postMessage(operationId);
  channel?.close();
}

/** Calls the listener after each answer. Returns a function that removes the listener. */
export function onAnswer(listener: () => void): () => void {
  listeners.add(listener);
  const channel = openChannel();
  channel?.addEventListener("message", ({ data }: MessageEvent<unknown>) => note(String(data)));
  return () => {
    listeners.delete(listener);
    channel?.close();
  };
}

function note(operationId: string): void {
  if (answered.has(operationId)) return;
  answered.add(operationId);
  for (const listener of listeners) listener();
}

/** Some runtimes, such as React Native, have no tabs. */
function openChannel(): BroadcastChannel | undefined {
  return typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(CHANNEL);
}
