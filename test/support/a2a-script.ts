/** Faults and requests of the A2A agents on loopback (`a2a-server.ts`). */

export interface A2aFaults {
  /** The answer to a method comes after so many milliseconds. */
  slow?: { method: string; ms: number };
  /** The connection breaks after the server has acted on so many further requests of this method. */
  lose?: { method: string; times: number };
  /** Each request is redirected there. */
  redirect?: string;
  /** The card names this address. */
  endpoint?: string;
  /** The card has this version of the protocol. */
  version?: string;
  /** The id of each task that a message begins. */
  taskId?: string;
  /** Each request of a method has this status. */
  status?: number;
  /** Each request of these methods has this status. */
  statusOf?: Record<string, number>;
  /** Each request of a method is refused with this text. */
  refusal?: string;
  /** The code of the refusals; -32602 when absent. */
  code?: number;
  /** The server no longer knows the tasks of requests. */
  lostTasks?: true;
  /** Each request of a method has a page of HTML as its answer, with status 200. */
  html?: true;
  /** The answers to methods have no end. */
  flood?: true;
  /** The server starts a new task for each message, also for a repeated message id. */
  forgetful?: true;
}

/** A received request. */
export interface SeenA2a {
  method: string;
  params: {
    message?: { messageId: string; contextId?: string; taskId?: string; parts: { text?: string }[] };
    id?: string;
  };
  headers: Record<string, string>;
}
