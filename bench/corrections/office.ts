/**
 * The outside world on loopback: the model of a careful clerk that speaks Chat Completions, and the office that books. The office
 * keeps the bookings of each conversation in order of arrival.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";

export const FIRST = "Book Monday";
export const CORRECTION = "No, Tuesday";

const MODEL_MS = 100;
const BOOKING_MS = 100;

const bookingSchema = z.object({ day: z.string(), instead: z.string().optional() });
export type Booking = z.infer<typeof bookingSchema>;

const chatSchema = z.object({
  messages: z.array(z.object({ role: z.string(), content: z.unknown(), tool_calls: z.unknown().optional() })),
});
type ChatMessage = z.infer<typeof chatSchema>["messages"][number];

export class Office {
  readonly #bookings = new Map<string, Booking[]>();
  readonly #server = createServer((request, response) => {
    // A stopped turn closes its connection.
    this.#handle(request, response).catch(() => response.destroy());
  });

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get baseUrl(): string {
    // SAFETY: a server that listens on a port has an `AddressInfo`.
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Returns the bookings for a customer, in order of arrival. */
  bookingsOf(customer: string): readonly Booking[] {
    return this.#bookings.get(customer) ?? [];
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
    const [, door, customer = ""] = (request.url ?? "").split("/");
    if (door === "book") {
      this.#bookings.set(customer, [...this.bookingsOf(customer), bookingSchema.parse(body)]);
      await pause(BOOKING_MS);
      response.end("{}");
      return;
    }
    await pause(MODEL_MS);
    const delta = replyTo(chatSchema.parse(body).messages, this.baseUrl);
    const choice = (members: object) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, ...members }] })}\n\n`;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const finish_reason = "tool_calls" in delta ? "tool_calls" : "stop";
    response.end(`${choice({ delta })}${choice({ delta: {}, finish_reason })}data: [DONE]\n\n`);
  }
}

/**
 * Returns the clerk's reply. The clerk follows the newest message of its turn, unless it sees that the user has changed it. If it
 * sees that Monday is booked, it moves the booking. A message names its customer: `Book Monday for CUSTOMER.`
 */
function replyTo(messages: readonly ChatMessage[], baseUrl: string): object {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const [, said = "", customer = ""] = /^(.*) for (\w+)\./.exec(String(messages[at]?.content)) ?? [];
  const isDone = messages.slice(at).some(({ role }) => role === "tool");
  const isChanged = messages.slice(at).some(({ content }) => String(content).includes(CORRECTION));
  const corrects = said === CORRECTION;
  if (isDone || (isChanged && !corrects)) return { content: "Done." };
  const seen = JSON.stringify(messages.slice(0, at));
  const isMondayBooked = /\\"day\\+":\\+"Monday/.test(seen);
  const booking: Booking = corrects
    ? { day: "Tuesday", ...(isMondayBooked ? { instead: "Monday" } : {}) }
    : { day: "Monday" };
  const args = JSON.stringify({ office: `${baseUrl}/book/${customer}`, ...booking });
  const id = `call_${crypto.randomUUID()}`;
  return { tool_calls: [{ index: 0, id, type: "function", function: { name: "book", arguments: args } }] };
}
