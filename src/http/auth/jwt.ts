/**
 * Principals from JSON Web Tokens (RFC 7519): who signed, for whom, and until when.
 *
 * JWT-1  What is configured decides the algorithms, never the token: a shared secret takes HS256, a key set asymmetric
 *        signatures. So there are no unsigned tokens, and no public key is ever taken for a secret.
 * JWT-2  A configuration that cannot be used lets nobody in, and says at `/health` what to change.
 * JWT-3  A token counts until its `exp`, and no token is without one.
 */
import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import { z } from "zod";
import { DramatisError } from "../../shared/errors.ts";
import { isChosenId } from "../../shared/identifiers.ts";
import { type Principal, ROLES } from "../../shared/principal.ts";
import { problem } from "../base/problem.ts";
import { bearerToken } from "./bearer.ts";
import { issuerKeys } from "./issuer-keys.ts";

/** What is read of the environment. All are strings as they come; a wrong one throws `UNAVAILABLE`. */
export interface JwtEnv {
  /** Signs tokens with HS256; at least 32 bytes. */
  AUTH_SECRET?: string;
  /** A secret that is being replaced: its tokens are still taken. */
  AUTH_SECRET_PREVIOUS?: string;
  /** Address of a JSON Web Key Set, instead of a secret. */
  AUTH_JWKS_URL?: string;
  /** Tokens must have this `iss`. */
  AUTH_ISSUER?: string;
  /** Tokens must have this among their `aud`. */
  AUTH_AUDIENCE?: string;
}

const NAMES = [
  "AUTH_SECRET",
  "AUTH_SECRET_PREVIOUS",
  "AUTH_JWKS_URL",
  "AUTH_ISSUER",
  "AUTH_AUDIENCE",
] as const;

/** A token may have at most this many characters. */
const MAX_TOKEN_LENGTH = 8192;
/** Clocks may differ by so many seconds. */
const CLOCK_TOLERANCE_S = 30;
/** HS256 needs a key as long as its hash (RFC 7518 §3.2). */
const MIN_SECRET_BYTES = 32;
/** The last second that dates can write with four digits of a year. */
const MAX_TIME_S = 253_402_300_799;

const ASYMMETRIC = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

const claimsSchema = z.object({
  sub: z
    .string()
    .min(1)
    .max(200)
    .refine((text) => text.isWellFormed()),
  tenant: z.string().refine(isChosenId),
  roles: z.array(z.string()).max(100).default(["member"]),
  exp: z.number().max(MAX_TIME_S),
});

type Key = Uint8Array | JWTVerifyGetKey;

interface Verifier {
  /** Tried one after another. */
  keys: readonly Key[];
  options: JWTVerifyOptions;
}

/** Whether anything of `JwtEnv` is set, be it by mistake: then nobody enters without a token. */
export function isJwtConfigured(env: JwtEnv): boolean {
  return NAMES.some((name) => env[name] !== undefined);
}

/** Throws `UNAVAILABLE`, saying what to change, unless the configuration can be used. */
export function checkJwtConfiguration(env: JwtEnv): void {
  verifierOf(env);
}

/** The principal of a request's token, or a 401. Throws `UNAVAILABLE` where the configuration or the keys fail. */
export async function jwtAuthorize(request: Request, env: JwtEnv): Promise<Principal | Response> {
  const verifier = verifierOf(env);
  const token = bearerToken(request);
  if (token === null) {
    return problem("UNAUTHENTICATED", "Send a token: `Authorization: Bearer …`.");
  }
  try {
    return principalOf(await verify(token, verifier));
  } catch (error) {
    if (error instanceof DramatisError) throw error;
    if (!(error instanceof errors.JOSEError)) console.error("A token could not be checked:", error);
    return refused(error instanceof errors.JWTExpired ? "The token has expired." : "The token is not valid.");
  }
}

async function verify(token: string, { keys, options }: Verifier): Promise<JWTPayload> {
  if (token.length > MAX_TOKEN_LENGTH) throw new errors.JWTInvalid("too long");
  let failure: unknown;
  for (const key of keys) {
    try {
      const { payload } = await (typeof key === "function"
        ? jwtVerify(token, key, options)
        : jwtVerify(token, key, options));
      return payload;
    } catch (error) {
      failure = error;
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) break;
    }
  }
  throw failure;
}

function principalOf(payload: JWTPayload): Principal {
  const claims = claimsSchema.safeParse(payload);
  if (!claims.success) throw new errors.JWTInvalid("claims");
  const { sub, tenant, roles, exp } = claims.data;
  return {
    subject: sub,
    tenant,
    roles: ROLES.filter((role) => roles.includes(role)),
    expiresAt: Math.floor((exp + CLOCK_TOLERANCE_S) * 1000),
  };
}

function refused(detail: string): Response {
  const challenge = `Bearer error="invalid_token", error_description="${detail}"`;
  return problem("UNAUTHENTICATED", detail, { headers: { "www-authenticate": challenge } });
}

/** Verifiers hold the fetched keys, so there is one for each environment. */
const verifiers = new WeakMap<JwtEnv, Verifier>();

function verifierOf(env: JwtEnv): Verifier {
  const known = verifiers.get(env);
  if (known !== undefined) return known;
  const verifier = createVerifier(env);
  verifiers.set(env, verifier);
  return verifier;
}

function createVerifier(env: JwtEnv): Verifier {
  const { AUTH_SECRET, AUTH_SECRET_PREVIOUS, AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE } = env;
  const options = {
    clockTolerance: CLOCK_TOLERANCE_S,
    requiredClaims: ["sub", "exp"],
    ...(AUTH_ISSUER === undefined ? {} : { issuer: checkedText("AUTH_ISSUER", AUTH_ISSUER) }),
    ...(AUTH_AUDIENCE === undefined ? {} : { audience: checkedText("AUTH_AUDIENCE", AUTH_AUDIENCE) }),
  };
  if (AUTH_JWKS_URL !== undefined) {
    if (AUTH_SECRET !== undefined || AUTH_SECRET_PREVIOUS !== undefined) {
      throw misconfigured("set AUTH_SECRET or AUTH_JWKS_URL, not both.");
    }
    return { keys: [keysAt(AUTH_JWKS_URL)], options: { ...options, algorithms: ASYMMETRIC } };
  }
  if (AUTH_SECRET === undefined) throw misconfigured("set AUTH_SECRET or AUTH_JWKS_URL.");
  const keys = [checkedSecret("AUTH_SECRET", AUTH_SECRET)];
  if (AUTH_SECRET_PREVIOUS !== undefined) {
    keys.push(checkedSecret("AUTH_SECRET_PREVIOUS", AUTH_SECRET_PREVIOUS));
  }
  return { keys, options: { ...options, algorithms: ["HS256"] } };
}

function keysAt(address: string): JWTVerifyGetKey {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url !== null && isTrustworthy(url)) return issuerKeys(url);
  throw misconfigured("AUTH_JWKS_URL must be an https address (http on a loopback address only).");
}

function isTrustworthy({ protocol, hostname }: URL): boolean {
  return (
    protocol === "https:" || (protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(hostname))
  );
}

function checkedSecret(name: string, secret: string): Uint8Array {
  const bytes = new TextEncoder().encode(secret);
  if (bytes.byteLength >= MIN_SECRET_BYTES) return bytes;
  throw misconfigured(`${name} must have at least ${MIN_SECRET_BYTES} bytes.`);
}

function checkedText(name: string, text: string): string {
  if (text !== "") return text;
  throw misconfigured(`${name} must not be empty; remove it or give it a value.`);
}

function misconfigured(what: string): DramatisError {
  return new DramatisError("UNAVAILABLE", `Authentication is not configured: ${what}`);
}
