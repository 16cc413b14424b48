/** The storage of this tab. It survives a reload and ends with the tab. After `clearStorage`, nothing is stored until the next load. */
let isOver = false;

const SIGNED_OUT = "dramatis.signed-out";

/** Returns a stored text; `null` without one, or if the browser has no storage. */
export function stored(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Stores a text; `null` removes it. A full or missing storage is ignored. */
export function store(key: string, text: string | null): void {
  if (isOver) return;
  try {
    if (text === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // The page works without it.
  }
}

/** Returns the time of the newest sign-out in this browser, in milliseconds; 0 without one. */
export function signedOutAt(): number {
  try {
    return Number(localStorage.getItem(SIGNED_OUT));
  } catch {
    return 0;
  }
}

/** Stores the time of a sign-out for tabs that do not run now. */
export function storeSignOut(): void {
  try {
    localStorage.setItem(SIGNED_OUT, String(Math.max(Date.now(), signedOutAt() + 1)));
  } catch {
    // The tabs that run end their sessions.
  }
}

/** Removes everything of the tab. The caller loads the page anew. */
export function clearStorage(): void {
  try {
    sessionStorage.clear();
  } catch {
    // No value is stored.
  }
}

/** Ends the storage until the next load, so that parts of the page that are still there cannot write. */
export function endStorage(): void {
  isOver = true;
}
