/**
 * The sign-in of the reader. The token is in the storage of the tab, so it survives a reload and is gone with the tab. Other sites cannot
 * use it, as they could use a cookie.
 *
 * SIGNIN-2  The token goes into the header of requests and into the subprotocol of sockets, and to other tabs of the console. It is never
 *           in an address, in the page or in the log.
 * SIGNIN-3  A request that the server refuses with 401 waits, and is sent again when the same user has signed in.
 * SIGNIN-4  With an address of tokens, the console renews the token before it expires, and after a refusal.
 * SIGNIN-5  When the reader signs out, and when another user signs in, the console removes everything that it has stored and loads the
 *           page anew. Signing out ends the session of all tabs. A tab that does not run then ends its session when it starts.
 * SIGNIN-6  A left page stays left until the next load. It sends no request and gives no token to a socket. So a
 *           page has one reader only. While it checks the user of a login without tokens, requests wait.
 */
import { useSyncExternalStore } from "react";
import { defined } from "../../src/shared/defined.ts";
import type { Role } from "../../src/shared/roles.ts";
import { isOwnPath, isPageAddress, type SignIn } from "../../src/shared/sign-in.ts";
import { clearStorage, endStorage, signedOutAt, store, stored, storeSignOut } from "./storage.ts";

/** The user of the session. */
export interface Reader {
  subject: string;
  tenant: string;
  roles: Role[];
}

export interface Session {
  /** `starting`: the server has not named the reader yet. `left`: the page loads again. `left` never changes (SIGNIN-6). */
  phase: "starting" | "ready" | "refused" | "left";
  /** Absent until somebody has signed in, and if the server could not be reached. */
  reader?: Reader;
  /** The application's login; absent = the reader pastes a token. */
  signIn?: SignIn;
  /** No language model is connected. */
  isOffline?: boolean;
  /** The server stores repositories. */
  hasRepositories?: boolean;
  /** The server's reason for the last refusal; empty if only the token is missing. */
  reason?: string;
  /** Changes with each sign-in. */
  entry: number;
}

interface StoredSession {
  token?: string;
  subject: string;
  tenant: string;
  /** The start of the session, in milliseconds. */
  since?: number;
}

type Message = { type: "ask" | "entered" | "sign-out" } | { type: "token"; token: string };

const KEY = "dramatis.session";
/** Attempts of a request: the first, and two after a sign-in. */
const MAX_ATTEMPTS = 3;
/** Wait for the token of another tab, in milliseconds. */
const OTHER_TABS_MS = 150;
/** A token is renewed after this part of its life. */
const RENEW_AT = 0.8;
const MIN_RENEWAL_MS = 1_000;
/** The longest wait of a timer in browsers, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

let session: Session = { phase: "starting", entry: 0 };
let token: string | undefined;
let waiting: PromiseWithResolvers<void> | null = null;
let renewing: Promise<boolean> | undefined;
let renewal: ReturnType<typeof setTimeout> | undefined;
/** The check after the reader has returned to the page. Requests wait for it (SIGNIN-6). */
let checking: Promise<void> = Promise.resolve();
let channel: BroadcastChannel | undefined;
const listeners = new Set<() => void>();
/** The result of requests from a page that the reader has left. */
const NEVER = new Promise<never>(() => undefined);

/** Returns the session and renders again when it changes. */
export function useSession(): Session {
  return useSyncExternalStore(subscribe, () => session);
}

/** Reports whether the session can end: it has a token or a login. */
export function canSignOut(): boolean {
  return token !== undefined || session.signIn !== undefined;
}

/** Reports whether requests need the token of the session. */
export function hasToken(): boolean {
  return token !== undefined;
}

/** Begins the session of this tab. */
export async function startSession(): Promise<void> {
  // The user of a login without tokens can change in another tab.
  const look = () => {
    if (document.visibilityState === "visible" && session.phase === "ready" && token === undefined)
      checking = checkSession();
  };
  channel = new BroadcastChannel("dramatis");
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === "ask" && token !== undefined) tell({ type: "token", token });
    if (data.type === "entered") look();
    if (data.type === "sign-out") leave("/");
  };
  // A page from the browser's memory could show the data of a session that is over.
  window.addEventListener("pageshow", ({ persisted }) => persisted && window.location.reload());
  document.addEventListener("visibilitychange", look);
  window.addEventListener("focus", look);
  if ((knownSession()?.since ?? 0) < signedOutAt()) clearStorage();
  token = knownSession()?.token;
  void factsOnce();
  try {
    if (!(await enter(token))) await refused(token);
  } catch {
    // The server cannot be reached. Each part of the page reports it.
    change({ phase: "ready" });
  }
}

/** `fetch` with the token. A refused request waits until the reader has signed in (SIGNIN-3). */
export async function signedFetch(url: string, init: RequestInit = {}): Promise<Response> {
  await checking;
  init.signal?.throwIfAborted();
  return untilSignedIn(url, init);
}

async function untilSignedIn(url: string, init: RequestInit = {}): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    const used = token;
    const response = await send(url, used, init);
    if (response.status !== 401 || attempt === MAX_ATTEMPTS) return response;
    await refused(used);
    init.signal?.throwIfAborted();
  }
}

/** Returns the token of a socket, if the session has one. If the session has ended, waits until the reader has signed in. */
export async function socketToken(): Promise<string | undefined> {
  if (canSignOut()) await checkSession();
  return isLeft() ? NEVER : token;
}

/**
 * Asks the server for the reader. If the session has ended, the reader is asked to sign in. If the server names another user, the page of
 * this one ends (SIGNIN-5).
 */
export async function checkSession(): Promise<void> {
  const response = await untilSignedIn("/api/me").catch(() => undefined);
  // SAFETY: the API's description types its answers.
  const reader = response?.ok
    ? ((await response.json().catch(() => undefined)) as Reader | undefined)
    : undefined;
  if (reader !== undefined && !isLeft() && isOther(reader)) handOver(reader, token);
}

/**
 * Begins or continues a session with a token, or without one if the application's login needs no token. Returns `false` if the server refuses
 * it. Throws if the server cannot be reached. Never ends in a page that the reader has left.
 */
export async function enter(candidate: string | undefined): Promise<boolean> {
  const response = await send("/api/me", candidate);
  if (response.status === 401) {
    const reason = (await detailOf(response)) ?? "";
    // The form asks for the token already.
    change({ reason: candidate === undefined && reason.startsWith("Send a token") ? "" : reason });
    return false;
  }
  if (!response.ok) throw new Error(`The server answered ${response.status}. Try again later.`);
  // SAFETY: the API's description types its answers.
  const reader = (await response.json()) as Reader;
  const facts = await factsOnce();
  if (isLeft()) return NEVER;
  if (isOther(reader)) {
    if (session.phase !== "starting") {
      handOver(reader, candidate);
      return true;
    }
    clearStorage();
  }
  token = candidate;
  remember(reader, token);
  change({ phase: "ready", reader, entry: session.entry + 1, ...facts });
  waiting?.resolve();
  waiting = null;
  tell({ type: "entered" });
  scheduleRenewal();
  return true;
}

/** Gets a token from the application's login, or checks its cookie. Returns `false` without a signed-in user there. Calls at once share it. */
export function renew(): Promise<boolean> {
  renewing ??= renewOnce().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function renewOnce(): Promise<boolean> {
  const { signIn } = session;
  if (signIn?.token === undefined) return signIn !== undefined && enter(undefined);
  const response = await send(signIn.token, undefined);
  const candidate = response.ok ? (await response.text()).trim() : "";
  return candidate !== "" && enter(candidate);
}

/** Ends the session in all tabs (SIGNIN-5). */
export function signOut(): void {
  storeSignOut();
  tell({ type: "sign-out" });
  leave(session.signIn?.signOut ?? "/");
}

/** Ends this user's page, and loads the next user's page. */
function handOver(next: Reader, bearer: string | undefined): void {
  clearStorage();
  remember(next, bearer);
  load("/");
}

function leave(to: string): void {
  clearStorage();
  load(to);
}

function load(to: string): void {
  token = undefined;
  clearTimeout(renewal);
  endStorage();
  change({ phase: "left" });
  window.location.replace(to);
}

/** Waits until a session with another token has begun. */
async function refused(used: string | undefined): Promise<void> {
  if (isLeft()) return NEVER;
  if (token !== used) return;
  if (waiting !== null) return waiting.promise;
  waiting = Promise.withResolvers();
  const { promise } = waiting;
  const { signIn } = await factsOnce();
  change({ ...defined({ signIn }) });
  const other = session.phase === "starting" && used === undefined ? await tokenOfOtherTab() : undefined;
  const found = other !== undefined ? enter(other) : signIn?.token !== undefined && renew();
  if (!(await Promise.resolve(found).catch(() => false))) change({ phase: "refused" });
  return promise;
}

/** Sends a request, but not from a page that the reader has left (SIGNIN-6). Its answers are of no use there, too. */
async function send(url: string, bearer: string | undefined, init: RequestInit = {}): Promise<Response> {
  if (isLeft()) return NEVER;
  const headers = new Headers(init.headers);
  if (bearer !== undefined) headers.set("authorization", `Bearer ${bearer}`);
  // Cloudflare Access then answers 401 instead of a redirect to its own page.
  headers.set("x-requested-with", "XMLHttpRequest");
  // The browser's cache keeps no answer for the next reader.
  const response = await fetch(url, { ...init, headers, cache: "no-store" });
  return isLeft() ? NEVER : response;
}

let asked: Promise<Facts> | undefined;

/** Facts of the server that need no session. */
type Facts = Pick<Session, "signIn" | "isOffline" | "hasRepositories">;

/** Reads the facts of the server once. Without an answer the reader pastes a token. */
function factsOnce(): Promise<Facts> {
  asked ??= readFacts().catch(() => {
    asked = undefined;
    return {};
  });
  return asked;
}

async function readFacts(): Promise<Facts> {
  const response = await send("/health", undefined);
  // SAFETY: the members are checked below.
  const { signIn, model, missing } = (await response.json()) as {
    signIn?: SignIn;
    model?: unknown;
    missing?: { name: string }[];
  };
  const isOffline = model === "offline";
  const hasRepositories = missing?.some(({ name }) => name === "DB" || name === "BUCKET") === false;
  if (signIn === undefined || !isPageAddress(signIn.page)) return { isOffline, hasRepositories };
  const { page, token, signOut } = signIn;
  return {
    isOffline,
    hasRepositories,
    signIn: {
      page,
      ...(isOwnPath(token) ? { token } : {}),
      ...(isPageAddress(signOut) ? { signOut } : {}),
    },
  };
}

async function detailOf(response: Response): Promise<string | undefined> {
  const body: unknown = await response.json().catch(() => null);
  const detail = typeof body === "object" && body !== null && "detail" in body ? body.detail : undefined;
  return typeof detail === "string" ? detail : undefined;
}

/** Asks the other tabs for their token; `undefined` if no tab answers in time. */
function tokenOfOtherTab(): Promise<string | undefined> {
  return new Promise((resolve) => {
    const ear = new BroadcastChannel("dramatis");
    const end = (found?: string) => {
      ear.close();
      clearTimeout(timer);
      resolve(found);
    };
    const timer = setTimeout(end, OTHER_TABS_MS);
    ear.onmessage = ({ data }: MessageEvent<Message>) => data.type === "token" && end(data.token);
    tell({ type: "ask" });
  });
}

function tell(message: Message): void {
  channel?.postMessage(message);
}

function scheduleRenewal(): void {
  clearTimeout(renewal);
  const expiresAt = token === undefined ? undefined : expiryOf(token);
  if (expiresAt === undefined || session.signIn?.token === undefined) return;
  const wait = Math.max(MIN_RENEWAL_MS, RENEW_AT * (expiresAt - Date.now()));
  renewal = setTimeout(() => void renew().catch(() => undefined), Math.min(wait, MAX_TIMER_MS));
}

/** Returns the `exp` of a JSON Web Token in milliseconds; `undefined` for other tokens. */
function expiryOf(bearer: string): number | undefined {
  try {
    const payload = (bearer.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { exp } = JSON.parse(atob(payload)) as { exp?: unknown };
    return typeof exp === "number" ? exp * 1_000 : undefined;
  } catch {
    return undefined;
  }
}

function knownSession(): StoredSession | undefined {
  const text = stored(KEY);
  // SAFETY: only this module writes it.
  return text === null ? undefined : (JSON.parse(text) as StoredSession);
}

function remember({ subject, tenant }: Reader, bearer: string | undefined): void {
  // The clock can go back. A session never seems older than the sign-out before it.
  const since = knownSession()?.since ?? Math.max(Date.now(), signedOutAt());
  store(
    KEY,
    JSON.stringify({ subject, tenant, since, ...defined({ token: bearer }) } satisfies StoredSession),
  );
}

/** Reports whether this page belongs to another user. */
function isOther({ subject, tenant }: Reader): boolean {
  const known = session.reader ?? knownSession();
  return known !== undefined && (known.subject !== subject || known.tenant !== tenant);
}

function isLeft(): boolean {
  return session.phase === "left";
}

function change(changes: Partial<Session>): void {
  if (isLeft()) return;
  session = { ...session, ...changes };
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
