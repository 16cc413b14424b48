/**
 * Scrolling of a growing list: it stays at its end while the reader is there, and where the reader is otherwise, also
 * when older entries are put in above.
 */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** So near to the end, in pixels, the reader is at the end. */
const NEAR = 32;

export interface PinnedScroll {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** The end is in view. */
  atEnd: boolean;
  toEnd(): void;
}

/** `firstKey` names the first entry: when it changes, entries were put in above. */
export function usePinnedScroll(firstKey: string | undefined): PinnedScroll {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const pinned = useRef(true);
  const height = useRef(0);
  const previousFirst = useRef(firstKey);
  const [atEnd, setAtEnd] = useState(true);

  const toEnd = useCallback(() => {
    pinned.current = true;
    const element = scroller.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    if (previousFirst.current !== undefined && previousFirst.current !== firstKey && !pinned.current) {
      element.scrollTop += element.scrollHeight - height.current;
    }
    previousFirst.current = firstKey;
    height.current = element.scrollHeight;
  }, [firstKey]);

  useEffect(() => {
    const element = scroller.current;
    const inner = content.current;
    if (element === null || inner === null) return;
    let top = element.scrollTop;
    const onScroll = () => {
      const near = element.scrollHeight - element.scrollTop - element.clientHeight <= NEAR;
      // Entries may have grown since this scroll happened: only who moves up leaves the end.
      if (near || element.scrollTop < top) pinned.current = near;
      top = element.scrollTop;
      setAtEnd(pinned.current);
    };
    const observer = new ResizeObserver(() => {
      height.current = element.scrollHeight;
      if (pinned.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(inner);
    observer.observe(element);
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", onScroll);
    };
  }, []);

  return { scroller, content, atEnd, toEnd };
}
