internal import Glibc

/// Where tests find PostgreSQL.
public enum TestEnvironment {
    /// Why a test that needs PostgreSQL cannot run.
    public struct Missing: Error, CustomStringConvertible {
        public var description: String {
            "SALTERN_TEST_DATABASE_URL is not set: run scripts/test, which starts a private PostgreSQL and sets it"
        }
    }

    /// The URL of a superuser on a PostgreSQL that tests may fill with databases and roles.
    /// - Throws: ``Missing``; the test then fails, because a test that is skipped proves nothing.
    public static func administratorURL() throws -> String {
        guard let value = getenv("SALTERN_TEST_DATABASE_URL") else { throw Missing() }
        return String(cString: value)
    }
}
