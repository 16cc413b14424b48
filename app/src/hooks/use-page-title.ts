/** Names the page in the title of its tab, until it is left. */
import { useEffect } from "react";

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Dramatis`;
    return () => {
      document.title = "Dramatis";
    };
  }, [title]);
}
