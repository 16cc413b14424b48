/**
 * Handles of deferred operations. A handle is the base64url form of its claim, a dot, and the signature of the claim's text
 * by the conversation that gave it out. Anyone can read the claim. Trust it only after a check of the signature.
 */
import { toBase64 } from "../shared/base64.ts";
import type { Result } from "../shared/errors.ts";
import { CONVERSATION_ID } from "../shared/identifiers.ts";

/** Default validity of a handle, in milliseconds. */
export const DEFAULT_DEFER_MS = 24 * 60 * 60 * 1_000;

/** Maximum validity of a handle, in milliseconds. */
export const MAX_DEFER_MS = 30 * 24 * 60 * 60 * 1_000;

const SHAPE = /^[A-Za-z0-9_-]{1,1000}\.[A-Za-z0-9_-]{43}$/;
/** A colon would let a tenant and an id be read as others: actors are named `{tenant}:{id}`. */
const TENANT = /^[^:]{1,200}$/;
const OPERATION = /^op_[0-9A-HJKMNP-TV-Z]{26}$/;

export interface HandleClaim {
  tenant: string;
  conversationId: string;
  operationId: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** A handle, taken apart. */
export interface ReadHandle {
  claim: HandleClaim;
  /** The text that was signed. */
  text: string;
  /** In base64url. */
  signature: string;
}

/** A handle that was given out. */
export interface GivenHandle {
  handle: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** The call of a tool that defers its operation. */
export interface DeferRequest {
  operationId: string;
  attempt: number;
  /** `DEFAULT_DEFER_MS` when absent. */
  expiresInMs?: number;
}

/** The RPC interface of a caller's actor for tools that defer their operation. Only Workers with a binding reach it. */
export interface DeferApi {
  /** Returns a handle of an operation that still waits for this attempt. `CONFLICT` for any other. */
  deferOperation(request: DeferRequest): Promise<Result<GivenHandle>>;
}

/** Returns the text of a claim, which is signed. */
export function claimText({ tenant, conversationId, operationId, expiresAt }: HandleClaim): string {
  return toBase64Url(
    new TextEncoder().encode(JSON.stringify([1, tenant, conversationId, operationId, expiresAt])),
  );
}

/** Takes a handle apart, without checking its signature; returns `null` for any other value. */
export function readHandle(handle: unknown): ReadHandle | null {
  if (typeof handle !== "string" || !SHAPE.test(handle)) return null;
  const [text = "", signature = ""] = handle.split(".");
  const claim = parseClaim(text);
  return claim === null ? null : { claim, text, signature };
}

function parseClaim(text: string): HandleClaim | null {
  try {
    const members: unknown = JSON.parse(new TextDecoder().decode(fromBase64Url(text)));
    if (!Array.isArray(members) || members.length !== 5) return null;
    const [version, tenant, conversationId, operationId, expiresAt]: unknown[] = members;
    const isClaim =
      version === 1 &&
      matches(tenant, TENANT) &&
      matches(conversationId, CONVERSATION_ID) &&
      matches(operationId, OPERATION);
    if (!isClaim || typeof expiresAt !== "number" || !Number.isSafeInteger(expiresAt)) return null;
    // SAFETY: `matches` has checked the texts.
    return { tenant, conversationId, operationId, expiresAt } as HandleClaim;
  } catch {
    return null;
  }
}

function matches(value: unknown, shape: RegExp): boolean {
  return typeof value === "string" && shape.test(value);
}

/** Encodes bytes as base64url, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes base64url. Throws for text that is not. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
