/**
 * Verification of JSON Web Tokens (RFC 7519), and the principals of their claims.
 *
 * JWT-1  The configuration decides the algorithms, never the token: HS256 for a shared secret, asymmetric signatures for a
 *        key set. So unsigned tokens are refused, and a public key is never used as a secret.
 * JWT-2  An invalid configuration refuses every request, and `/health` reports what to change.
 * JWT-3  A token is valid until its `exp`. A token without `exp` is refused.
 */
import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import { z } from "zod";
import { systemClock } from "../../ports/system.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, unavailable } from "../../shared/errors.ts";
import { isTenantName } from "../../shared/identifiers.ts";
import type { Principal } from "../../shared/principal.ts";
import { ROLES } from "../../shared/roles.ts";
import { problem } from "../base/problem.ts";
import { bearerToken } from "./bearer.ts";
import { issuerKeys } from "./issuer-keys.ts";

/** The variables of authentication by token. An invalid one throws `UNAVAILABLE`. */
export interface JwtEnv {
  /** Signs tokens with HS256; at least 32 bytes. */
  AUTH_SECRET?: string;
  /** The secret before a rotation. Its tokens are still accepted. */
  AUTH_SECRET_PREVIOUS?: string;
  /** Address of a JSON Web Key Set, instead of a secret. */
  AUTH_JWKS_URL?: string;
  /** Tokens must have this `iss`. */
  AUTH_ISSUER?: string;
  /** Tokens must have this in their `aud`. */
  AUTH_AUDIENCE?: string;
}

const NAMES = [
  "AUTH_SECRET",
  "AUTH_SECRET_PREVIOUS",
  "AUTH_JWKS_URL",
  "AUTH_ISSUER",
  "AUTH_AUDIENCE",
] as const;

/** Maximum length of a token, in characters. */
const MAX_TOKEN_LENGTH = 8192;
/** Tolerated difference of clocks, in seconds. */
const CLOCK_TOLERANCE_S = 30;
/** HS256 requires a key of the length of its hash (RFC 7518 §3.2). */
const MIN_SECRET_BYTES = 32;
/** The last second with a year of four digits. */
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
  tenant: z.string().refine(isTenantName),
  roles: z.array(z.string()).max(100).default(["member"]),
  exp: z.number().max(MAX_TIME_S),
});

interface Verifier {
  /** Tried in order. */
  keys: readonly (Uint8Array | JWTVerifyGetKey)[];
  options: JWTVerifyOptions;
}

/** Reports whether any variable of `JwtEnv` is set, even an invalid one: then every request needs a token. */
export function isJwtConfigured(env: JwtEnv): boolean {
  return NAMES.some((name) => env[name] !== undefined);
}

/** Throws `UNAVAILABLE`, with the variable to change, if the configuration is invalid. */
export function checkJwtConfiguration(env: JwtEnv): void {
  verifierOf(env);
}

/** Returns the principal of a request's token, or a 401. Throws `UNAVAILABLE` if the configuration or the keys fail. */
export async function jwtAuthorize(request: Request, env: JwtEnv): Promise<Principal | Response> {
  const verifier = verifierOf(env);
  const token = bearerToken(request);
  if (token === null) return problem("UNAUTHENTICATED", "Send a token: `Authorization: Bearer …`.");
  try {
    return principalOf(await verifyToken(token, verifier));
  } catch (error) {
    if (error instanceof DramatisError) throw error;
    if (!(error instanceof errors.JOSEError)) console.error("A token could not be verified:", error);
    const detail = error instanceof errors.JWTExpired ? "The token has expired." : "The token is not valid.";
    const challenge = `Bearer error="invalid_token", error_description="${detail}"`;
    return problem("UNAUTHENTICATED", detail, { headers: { "www-authenticate": challenge } });
  }
}

async function verifyToken(token: string, { keys, options }: Verifier): Promise<JWTPayload> {
  if (token.length > MAX_TOKEN_LENGTH) throw new errors.JWTInvalid("too long");
  let failure: unknown;
  for (const key of keys) {
    try {
      return (await jwtVerify(token, key, options)).payload;
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

/** Verifiers hold the fetched keys, so each environment has one. */
const verifiers = new WeakMap<JwtEnv, Verifier>();

function verifierOf(env: JwtEnv): Verifier {
  const known = verifiers.get(env);
  if (known !== undefined) return known;
  const verifier = createVerifier(env);
  verifiers.set(env, verifier);
  return verifier;
}

function createVerifier(env: JwtEnv): Verifier {
  const { AUTH_SECRET, AUTH_SECRET_PREVIOUS, AUTH_JWKS_URL } = env;
  const options = {
    clockTolerance: CLOCK_TOLERANCE_S,
    requiredClaims: ["sub", "exp"],
    ...defined({ issuer: nonEmpty(env, "AUTH_ISSUER"), audience: nonEmpty(env, "AUTH_AUDIENCE") }),
  };
  if (AUTH_JWKS_URL !== undefined) {
    if (AUTH_SECRET !== undefined || AUTH_SECRET_PREVIOUS !== undefined)
      throw misconfigured("set AUTH_SECRET or AUTH_JWKS_URL, not both.");
    return { keys: [keysAt(AUTH_JWKS_URL)], options: { ...options, algorithms: ASYMMETRIC } };
  }
  if (AUTH_SECRET === undefined) throw misconfigured("set AUTH_SECRET or AUTH_JWKS_URL.");
  const keys = [secretKey("AUTH_SECRET", AUTH_SECRET)];
  if (AUTH_SECRET_PREVIOUS !== undefined) keys.push(secretKey("AUTH_SECRET_PREVIOUS", AUTH_SECRET_PREVIOUS));
  return { keys, options: { ...options, algorithms: ["HS256"] } };
}

function keysAt(address: string): JWTVerifyGetKey {
  const url = URL.canParse(address) ? new URL(address) : null;
  const isLoopback = ["127.0.0.1", "localhost", "[::1]"].includes(url?.hostname ?? "");
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback))
    return issuerKeys(url, systemClock);
  throw misconfigured("AUTH_JWKS_URL must be an https address (http on a loopback address only).");
}

function secretKey(name: string, secret: string): Uint8Array {
  const bytes = new TextEncoder().encode(secret);
  if (bytes.byteLength >= MIN_SECRET_BYTES) return bytes;
  throw misconfigured(`${name} must have at least ${MIN_SECRET_BYTES} bytes.`);
}

function nonEmpty(env: JwtEnv, name: keyof JwtEnv): string | undefined {
  if (env[name] === "") throw misconfigured(`${name} must not be empty; remove it or give it a value.`);
  return env[name];
}

function misconfigured(change: string): DramatisError {
  return unavailable(`Authentication is not configured: ${change}`);
}
