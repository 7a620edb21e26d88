/** A text that others are told, and that changes. */
export interface PublishedText {
  /** As it is now. */
  readonly text: () => string;
  /** Calls when it has changed; gives the way to stop. */
  readonly onText: (changed: () => void) => () => void;
}
