internal import Glibc

/// The PostgreSQL of the tests, from the environment.
public enum TestEnvironment {
    /// The reason for which a test that needs PostgreSQL cannot run.
    public struct Missing: Error, CustomStringConvertible {
        public var description: String {
            "SALTERN_TEST_DATABASE_URL is not set: run scripts/test, which starts a private PostgreSQL and sets it"
        }
    }

    /// Returns the URL of a superuser on a PostgreSQL in which tests may create databases and roles.
    /// - Throws: ``Missing``. The test then fails, because a skipped test proves nothing.
    public static func administratorURL() throws -> String {
        guard let value = getenv("SALTERN_TEST_DATABASE_URL") else { throw Missing() }
        return String(cString: value)
    }

    /// The URLs of the workers' superusers (`SALTERN_TEST_CLUSTER_WORKERS`, separated by spaces) if
    /// ``administratorURL()`` is the coordinator of a cluster. Databases are created on all nodes then, and
    /// distributed.
    static var workerURLs: [String] {
        guard let value = getenv("SALTERN_TEST_CLUSTER_WORKERS") else { return [] }
        return String(cString: value).split(separator: " ").map(String.init)
    }

    /// True when databases are distributed over the nodes of a cluster.
    public static var isCluster: Bool { !workerURLs.isEmpty }

    /// True when servers connect to a worker instead of the coordinator (`SALTERN_TEST_CLUSTER_ENTRY=worker`).
    static var entersByWorker: Bool {
        getenv("SALTERN_TEST_CLUSTER_ENTRY").map { String(cString: $0) == "worker" } ?? false
    }
}
