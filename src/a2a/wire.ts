/** The answers of A2A 1.0, as far as the client reads them. Unknown members are ignored. Pure. */
import { z } from "zod";
import type { Json } from "../shared/json.ts";

/** Characters of an id. An id is sent back, and stored. */
const id = z.string().min(1).max(1_000);

const partSchema = z.object({
  text: z.string().optional(),
  data: z.custom<Json>((value) => value !== undefined).optional(),
  raw: z.string().optional(),
  url: z.string().optional(),
  filename: z.string().optional(),
  mediaType: z.string().optional(),
});

const partsSchema = z.array(partSchema).default([]);

const messageSchema = z.object({ contextId: z.string().max(1_000).optional(), parts: partsSchema });

export const taskSchema = z.object({
  id,
  contextId: z.string().max(1_000).optional(),
  status: z.object({ state: z.string(), message: messageSchema.nullish() }),
  artifacts: z.array(z.object({ parts: partsSchema })).nullish(),
});

export const sentSchema = z.union([z.object({ task: taskSchema }), z.object({ message: messageSchema })]);

export const rpcAnswerSchema = z.union([
  z.object({ error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ result: z.unknown() }),
]);

export const cardSchema = z.object({
  supportedInterfaces: z
    .array(
      z.object({
        url: z.string(),
        protocolBinding: z.string(),
        protocolVersion: z.string(),
        tenant: z.string().max(1_000).optional(),
      }),
    )
    .min(1),
});

export type RemotePart = z.infer<typeof partSchema>;
export type RemoteTask = z.infer<typeof taskSchema>;
