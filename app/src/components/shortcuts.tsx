/** Keyboard shortcuts of the console, and the dialog that lists them. */
import { useEffect, useState } from "react";
import { INBOX_PATH } from "../route.ts";
import { navigate } from "../router.ts";
import { DialogPanel } from "./dialog-panel.tsx";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);
const COMMAND = IS_MAC ? "⌘" : "Ctrl";

const SHORTCUTS: readonly (readonly [keys: readonly string[], text: string])[] = [
  [[COMMAND, "K"], "Search conversations"],
  [[COMMAND, "Shift", "O"], "New conversation"],
  [[COMMAND, "Shift", "I"], "Inbox"],
  [["/"], "Write a message"],
  [["Enter"], "Send the message"],
  [["Shift", "Enter"], "New line"],
  [["Esc"], "Stop the answers"],
  [["?"], "Show this list"],
];

/** `onSearch` shows the search of the list. */
export function Shortcuts({ onSearch }: { onSearch: () => void }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const action = actionOf(event);
      if (action === undefined || event.isComposing || document.querySelector("dialog[open]") !== null)
        return;
      event.preventDefault();
      if (action === "search") onSearch();
      else if (action === "help") setOpen(true);
      else if (action === "write") document.querySelector<HTMLElement>("[data-testid=composer]")?.focus();
      else navigate(action);
    };
    window.addEventListener("keydown", onKey);
    const open = () => setOpen(true);
    window.addEventListener(SHOW, open);
    return () => {
      window.removeEventListener("keydown", onKey);
      window.removeEventListener(SHOW, open);
    };
  }, [onSearch]);
  if (!isOpen) return null;
  return (
    <DialogPanel
      title="Keyboard shortcuts"
      closeLabel="Close the shortcuts"
      testId="shortcuts"
      onClose={() => setOpen(false)}
    >
      <dl className="grid gap-x-6 gap-y-2 p-2 text-sm sm:grid-cols-2">
        {SHORTCUTS.map(([keys, text]) => (
          <div key={text} className="flex items-center justify-between gap-3">
            <dt>{text}</dt>
            <dd className="flex gap-1">
              {keys.map((key) => (
                <kbd
                  key={key}
                  className="rounded border border-line bg-sunken px-1.5 py-0.5 font-sans text-xs"
                >
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </DialogPanel>
  );
}

const SHOW = "dramatis:shortcuts";

/** Opens the dialog. */
export function showShortcuts(): void {
  window.dispatchEvent(new Event(SHOW));
}

/** Returns the action of a key: a name, or a path to open. */
function actionOf(event: KeyboardEvent): string | undefined {
  const { key, ctrlKey, metaKey, shiftKey, altKey, target } = event;
  if (ctrlKey || metaKey) {
    if (altKey) return undefined;
    const pressed = key.toLowerCase();
    if (!shiftKey) return pressed === "k" ? "search" : undefined;
    return pressed === "o" ? "/" : pressed === "i" ? INBOX_PATH : undefined;
  }
  const isTyping =
    target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
  if (isTyping || altKey) return undefined;
  return key === "?" ? "help" : key === "/" ? "write" : undefined;
}
