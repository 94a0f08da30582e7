import HTTPCore
import SalternTesting
import Testing
import VaultLog

/// The budget of a vault for entries of others than its owner.
@Suite struct VaultRateTests {
    @Test func `a member that joins again does not begin at zero`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let mallory = try await vault.join(as: .manager)
            let bob = try await vault.join(as: .manager)
            let account = try await app.register()
            var refusal: TestResponse?
            cycles: for _ in 0..<6 {
                // A new member of one account.
                let twin = try await vault.join(as: .manager, with: account, by: mallory)
                for index in 0..<58 {
                    let reply = try await vault.append(.role(bob.member, index % 2 == 0 ? .writer : .manager), by: twin)
                    guard reply.status == 200 else {
                        refusal = reply
                        break cycles
                    }
                }
                #expect(try await vault.append(.leave, by: twin).status == 200)
            }
            #expect(refusal?.code == "too_many_entries")
            // The founding entry and two invitations are the owner's, and the last entry has lowered a role.
            #expect(vault.log.head.number.value == 260)
            let link = try vault.makeInvitation(as: .reader, by: mallory)
            #expect(try await mallory.client.post("\(vault.path)/invitations", link.body).code == "too_many_entries")
            // The owner and its guests go on, and a member leaves.
            #expect(try await vault.append(.role(bob.member, .manager)).status == 200)
            let carol = try await vault.join(as: .reader)
            #expect(try await vault.append(.leave, by: carol).status == 200)
            // A manager takes rights away, and gives none.
            #expect(try await vault.append(.role(mallory.member, .reader), by: bob).status == 200)
            let raise = EntryPayload.role(mallory.member, .manager)
            #expect(try await vault.append(raise, by: bob).code == "too_many_entries")
            // A removal by the owner renews the budget.
            let (generation, keys) = try vault.newKeys(without: [mallory.member])
            #expect(try await vault.append(.remove(generation, [mallory.member]), by: nil, keys).status == 200)
            _ = try await vault.join(as: .reader, with: try await app.register(), by: bob)
        }
    }

    @Test func `others than the owner fill a third of a log in a year`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            let carol = try await vault.join(as: .reader)
            var (count, wait) = (0, 0)
            for index in 0..<1_100 {
                let role: Role = count % 2 == 0 ? .writer : .reader
                let reply = try await vault.append(.role(carol.member, role), by: bob)
                if reply.status == 200 {
                    count += 1
                    continue
                }
                #expect(reply.code == "too_many_entries", "\(index): \(reply)")
                wait = try #require(reply.fields["Retry-After"].flatMap { Int($0) })
                if wait > 86_400 { break }
                app.clock.advance(by: .seconds(wait))
            }
            #expect(count == 1_022)
            #expect(wait > 86_400 * 300)
            #expect(try await vault.append(.role(carol.member, .manager)).status == 200)
        }
    }

    @Test func `all members but the owner rotate once in a minute together`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            let carol = try await vault.join(as: .manager)
            let dan = try await vault.join(as: .reader)
            let (first, firstKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(first), by: bob, firstKeys).status == 200)
            var other = vault
            let (second, secondKeys) = try other.newKeys()
            #expect(try await other.append(.rotate(second), by: carol, secondKeys).code == "too_many_entries")
            let (third, thirdKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(third), by: nil, thirdKeys).status == 200)
            let (fourth, fourthKeys) = try vault.newKeys(without: [dan.member])
            #expect(try await vault.append(.remove(fourth, [dan.member]), by: carol, fourthKeys).status == 200)
            app.clock.advance(by: .seconds(60))
            let (fifth, fifthKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(fifth), by: carol, fifthKeys).status == 200)
        }
    }

    @Test func `all members but the owner rotate 32 times in a day together`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let managers = [try await vault.join(as: .manager), try await vault.join(as: .manager)]
            let dan = try await vault.join(as: .reader)
            for index in 0..<32 {
                let (next, keys) = try vault.newKeys()
                #expect(try await vault.append(.rotate(next), by: managers[index % 2], keys).status == 200)
                app.clock.advance(by: .seconds(60))
            }
            var other = vault
            let (refused, refusedKeys) = try other.newKeys()
            #expect(try await other.append(.rotate(refused), by: managers[0], refusedKeys).code == "too_many_entries")
            let (next, keys) = try vault.newKeys(without: [dan.member])
            #expect(try await vault.append(.remove(next, [dan.member]), by: managers[0], keys).status == 200)
            let (last, lastKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(last), by: nil, lastKeys).status == 200)
        }
    }

    @Test func `a member with 60 entries in an hour leaves`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            let carol = try await vault.join(as: .reader)
            for index in 0..<59 {
                let role: Role = index % 2 == 0 ? .writer : .reader
                #expect(try await vault.append(.role(carol.member, role), by: bob).status == 200)
            }
            #expect(try await vault.append(.role(carol.member, .reader), by: bob).code == "too_many_entries")
            #expect(try await vault.append(.leave, by: bob).status == 200)
        }
    }
}
