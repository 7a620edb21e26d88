/** The result, or undefined when the operation fails with one of the system's error codes that are to be expected. */
export async function ignoring<T>(codes: readonly string[], operation: () => Promise<T>): Promise<T | undefined> {
  try {
    return await operation();
  } catch (error) {
    if (error instanceof Error && "code" in error && codes.includes(String(error.code))) return undefined;
    throw error;
  }
}
