/** The limits of a conversation's readers. Lengths are UTF-16 units. */

/** Length of a frame from a client. */
export const MAX_FRAME_LENGTH = 2 * 1024 * 1024;
/** Maximum number of claims of one connection: the calls of two replies of maximum size. The oldest claims are dropped. */
export const MAX_CLAIMS = 128;
/** Open WebSockets of a conversation; also its open streams of server-sent events. */
export const MAX_READERS = 256;
/** Actors that subscribe to a conversation. */
export const MAX_SUBSCRIBERS = 16;
