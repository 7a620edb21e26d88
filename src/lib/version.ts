/** Version of this program; a test keeps it equal to package.json. */
export const VERSION = "0.1.0";

/** The release of Istio whose API, protocols and command lines this program speaks. */
export const ISTIO_VERSION = "1.29.6";
