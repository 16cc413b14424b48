/** The address of a file for an `img`. An `img` sends no token, so with a session the page loads the file itself. */
import { useEffect, useState } from "react";
import { hasToken, signedFetch } from "../session.ts";

/** Returns the address; `undefined` until the file is loaded, and if it cannot be loaded. */
export function useFileAddress(address: string): string | undefined {
  const [loaded, setLoaded] = useState<string | undefined>(undefined);
  const isOwn = hasToken();
  useEffect(() => {
    if (!isOwn) return;
    const controller = new AbortController();
    let url: string | undefined;
    const load = async () => {
      const response = await signedFetch(address, { signal: controller.signal });
      if (!response.ok) return;
      url = URL.createObjectURL(await response.blob());
      if (controller.signal.aborted) URL.revokeObjectURL(url);
      else setLoaded(url);
    };
    load().catch(() => undefined);
    return () => {
      controller.abort();
      if (url !== undefined) URL.revokeObjectURL(url);
    };
  }, [address, isOwn]);
  return isOwn ? loaded : address;
}
