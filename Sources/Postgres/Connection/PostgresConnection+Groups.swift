/// Transactions around requests: a group of several, which begins with the first that is sent and ends with the turn of the
/// loop in which the last one was; and on a cluster a block around each that writes more than once.
extension PostgresConnection {
    /// The next `count` requests are members of a group. The pool sees to it that no others come before its end is
    /// answered.
    func expectGroup(_ count: Int) { expectedMembers = count }

    /// Begins the next member, and the group with the first.
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
    /// - Returns: Whether the turn's end may be sent: members whose tasks have not had their turn yet ask for another one.
    func endGroup() -> Bool {
        guard openBatch == .group else { return true }
        if expectedMembers > 0 && !isBroken { return false }
        sendSimple("COMMIT")
        pipeline.sentCommit()
        return true
    }

    /// Begins a transaction for the request that follows.
    func beginBlock() {
        openBatch = .block
        sendSimple("BEGIN ISOLATION LEVEL READ COMMITTED")
        pipeline.sentBlockBegin()
        setLockTimeout(client.configuration.sharedLockTimeout)
    }
}
