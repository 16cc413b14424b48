/** Marks the messages of this console by their client ids. They have no options, so their content alone repeats them. */
const PREFIX = "console-";

/** Returns a new client id for a message of this console. */
export function newMessageId(): string {
  return `${PREFIX}${crypto.randomUUID()}`;
}

/** Reports whether a console sent the message with this client id. */
export function isOwnMessage(clientId: string | undefined): boolean {
  return clientId?.startsWith(PREFIX) ?? false;
}
