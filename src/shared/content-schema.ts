/** What a user sends, as it is written. */
import { z } from "zod";

export type TextPart = { type: "text"; text: string };
export type MediaPart = {
  type: "image" | "file";
  url: string;
  mediaType?: string | undefined;
  name?: string | undefined;
};
/** What a user sends: text, or parts. */
export type Content = string | (TextPart | MediaPart)[];

const part = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({
    type: z.enum(["image", "file"]),
    url: z.string().min(1),
    mediaType: z.string().optional(),
    name: z.string().optional(),
  }),
]);

/** A user's content; size and blankness are checked where its limits are known. */
export const contentSchema = z.union([z.string(), z.array(part).min(1).max(64)]);
