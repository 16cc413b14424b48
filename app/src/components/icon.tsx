/** Icons, drawn in the color of the text beside them. */
const paths = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M6 6h12v12H6z",
  settings:
    "M4 8h9M19 8h1M4 16h1M11 16h9M16 5.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5M8 13.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5",
  clip: "M20 11.5l-8 8a5 5 0 0 1-7-7l8-8a3.4 3.4 0 0 1 4.8 4.8l-8 8a1.7 1.7 0 0 1-2.4-2.4l7.4-7.4",
  down: "M12 5v14M6 13l6 6 6-6",
  chevron: "M9 6l6 6-6 6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  retry: "M20 11a8 8 0 1 0-2.3 6M20 5v6h-6",
  alert: "M12 8v5M12 16.5v.1M12 3.5l9 16H3z",
  clock: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 7.5V12l3 2",
  agent: "M12 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8M4.5 20a7.5 7.5 0 0 1 15 0",
  agents:
    "M9 5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7M2.5 19.5a6.5 6.5 0 0 1 13 0M16 5.3a3.5 3.5 0 0 1 0 6.4M18 13.8a6.5 6.5 0 0 1 3.5 5.7",
  model: "M12 4l1.8 6.2L20 12l-6.2 1.8L12 20l-1.8-6.2L4 12l6.2-1.8z",
  tool: "M14.5 6.5a4 4 0 0 1 5-2l-2.7 2.7l.3 2.2l2.2.3L22 7a4 4 0 0 1-5.5 5L9 19.5a2.1 2.1 0 0 1-3-3l7.5-7.5a4 4 0 0 1 1-2.5",
  graph: "M9 4h6v5H9zM3 15h6v5H3zM15 15h6v5h-6zM12 9v3M6 15v-3h12v3",
  list: "M4 6h10M4 10.7h16M4 15.3h7M4 20h13",
  pin: "M9 3h6l-1 6l3 4H7l3-4zM12 13v8",
  leave: "M14 4H5v16h9M10 12h11M17 8l4 4-4 4",
  more: "M5 11.2a.8.8 0 1 0 0 1.6a.8.8 0 1 0 0-1.6M12 11.2a.8.8 0 1 0 0 1.6a.8.8 0 1 0 0-1.6M19 11.2a.8.8 0 1 0 0 1.6a.8.8 0 1 0 0-1.6",
  trash: "M4 7h16M9.5 7V4h5v3M6.5 7l1 13h9l1-13M10.5 11v5M13.5 11v5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  pencil: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  fork: "M6 4v16M6 14c0-4 12-2 12-8V4M15 7l3-3l3 3",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M15.3 15.3L20 20",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1 3h4l1-3h5",
  keyboard: "M3 6h18v12H3zM7 10v.1M11 10v.1M15 10v.1M8 14h8",
  book: "M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h11",
  folder: "M3.5 6h6l2 2.5h9V19h-17z",
  file: "M6 3.5h8l4 4V20.5H6zM14 3.5v4h4",
  branch:
    "M6 8v8M6 3.5a2 2 0 1 0 0 4a2 2 0 1 0 0-4M6 16.5a2 2 0 1 0 0 4a2 2 0 1 0 0-4M18 4.5a2 2 0 1 0 0 4a2 2 0 1 0 0-4M18 8.5c0 5-12 3-12 7.5",
  terminal: "M3.5 5h17v14h-17zM7 9.5l3 2.5-3 2.5M12.5 15h4",
  spinner: "M12 3a9 9 0 1 0 9 9",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg
      viewBox="0 0 24 24"
      className={`size-4 shrink-0 ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
