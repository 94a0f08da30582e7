/// Transactions around requests.
///
/// A group of several requests begins with the first one sent. It ends with the loop iteration in which the last one
/// was sent. On a cluster, a block encloses each request that writes more than once.
extension PostgresConnection {
    /// Makes the next `count` requests members of a group. The pool admits no others until its end is answered.
    func expectGroup(_ count: Int) { expectedMembers = count }

    /// Begins the next member. The first one begins the group.
    func beginMember() {
        if openBatch != .group {
            sync()
            settleDebts()
            sendSimple("BEGIN ISOLATION LEVEL READ COMMITTED")
            pipeline.sentBegin()
            openBatch = .group
        }
        expectedMembers -= 1
    }

    /// Ends the group, if one was begun and all of its members were sent.
    /// - Returns: False if members are still to be sent. Their tasks schedule another flush.
    func endGroup() -> Bool {
        guard openBatch == .group else { return true }
        if expectedMembers > 0 && !isBroken { return false }
        sendSimple("COMMIT")
        pipeline.sentCommit()
        return true
    }

    /// Begins a transaction for the next request.
    func beginBlock() {
        openBatch = .block
        sendSimple("BEGIN ISOLATION LEVEL READ COMMITTED")
        pipeline.sentBlockBegin()
        setLockTimeout(client.configuration.sharedLockTimeout)
    }
}
