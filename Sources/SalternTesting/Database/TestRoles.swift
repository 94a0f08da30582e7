/// The roles that every temporary database of a cluster shares.
enum TestRoles {
    static let owner = "saltern_test_owner"
    static let server = "saltern_test_server"
    /// Not a secret: the roles exist in the throw-away PostgreSQL of a test run only.
    static let password = "throw-away"

    /// The group that migrations grant to, and the two login roles. Runs under the makers' lock.
    static let script = """
        DO $$
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_server') THEN
                CREATE ROLE saltern_server NOLOGIN;
            END IF;
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '\(owner)') THEN
                CREATE ROLE \(owner) LOGIN PASSWORD '\(password)';
            END IF;
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '\(server)') THEN
                CREATE ROLE \(server) LOGIN PASSWORD '\(password)' IN ROLE saltern_server;
            END IF;
        END
        $$
        """
}
