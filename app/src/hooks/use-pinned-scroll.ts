/**
 * Scrolling of a growing list. At the end, it follows new entries. Elsewhere it keeps its position, also when older entries
 * are inserted above.
 */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** Distance from the end that counts as the end, in pixels. */
const END_MARGIN = 32;

export interface PinnedScroll {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** `true` while the end is in view. */
  atEnd: boolean;
  toEnd(): void;
  /** Keeps the position from now on, also at the end. */
  leaveEnd(): void;
}

/** `firstKey` is the key of the first entry. A change of it means that entries were inserted above. */
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

  const leaveEnd = useCallback(() => {
    pinned.current = false;
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
      const near = element.scrollHeight - element.scrollTop - element.clientHeight <= END_MARGIN;
      // Growing entries cause scroll events too. Only scrolling up leaves the end.
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

  return { scroller, content, atEnd, toEnd, leaveEnd };
}
