public import Postgres

extension Schema {
    /// Where the rows of each table are on a cluster: what a request asks for together is on one node.
    ///
    /// A table that is not named here stays on the coordinator where no other node finds it, so each has a place.
    public static var placements: [TablePlacement] {
        [
            TablePlacement("installation", .everywhere),
            TablePlacement("plans", .everywhere),
            // Few, and found by code, by name and by the account that used one.
            TablePlacement("invites", .everywhere),
            TablePlacement("schema_migrations", .onCoordinator),
            // One chain has one end.
            TablePlacement("audit_log", .onCoordinator),
            TablePlacement("audit_head", .onCoordinator),
            TablePlacement("logins", .spread(by: "userid", with: "logins")),
            TablePlacement("failed_attempts", .spread(by: "subject", with: "failed_attempts")),
            TablePlacement("shares", .spread(by: "share_id", with: "shares")),
            TablePlacement("accounts", ofAccount),
            TablePlacement("sessions", ofAccount),
            TablePlacement("items", ofAccount),
            TablePlacement("deleted_contents", ofAccount),
            TablePlacement("replaced_contents", ofAccount),
            TablePlacement("recoveries", ofAccount),
            TablePlacement("kept_keyrings", ofAccount),
            TablePlacement("second_factors", ofAccount),
            TablePlacement("second_factor_codes", ofAccount),
            TablePlacement("rotations", ofAccount),
            TablePlacement("rotation_items", ofAccount),
            TablePlacement("receipts", ofAccount),
            TablePlacement("security_events", ofAccount),
            TablePlacement("account_shares", ofAccount),
        ]
    }

    private static let ofAccount = TablePlacement.Kind.spread(by: "account_id", with: "accounts")
}
