/** Whether gRPC can send a text as the value of a header. With any other a call ends, and nobody says why. */
export function isHeaderValue(text: string): boolean {
  return /^[ -~]*$/.test(text);
}

/** Whether a header has bytes in place of text, as gRPC tells by its name. */
export function isBinaryHeader(name: string): boolean {
  return name.toLowerCase().endsWith("-bin");
}
