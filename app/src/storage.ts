/** The storage of this tab. It survives a reload and ends with the tab. After `clearStorage`, nothing is stored until the next load. */
let isOver = false;

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

/** Removes everything. The caller loads the page anew. */
export function clearStorage(): void {
  try {
    sessionStorage.clear();
  } catch {
    // There is nothing to remove.
  }
}

/** Ends the storage until the next load, so that parts of the page that are still there cannot write. */
export function endStorage(): void {
  isOver = true;
}
