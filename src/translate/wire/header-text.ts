const LONGEST = 16_384;

/** Whether Envoy takes a text as a part of a header: no line breaks, and not too long. */
export function isHeaderText(text: string): boolean {
  return !/[\0\r\n]/.test(text) && Buffer.byteLength(text) <= LONGEST;
}
