//! Rules 10 to 13: ends of charges.

use serde_json::json;

use super::super::{cards, pix};
use super::wire_calls::ObservedAnswer;
use super::{AMOUNT, Check, Defect, Rule, not_tested};

impl Check<'_> {
    async fn close(&self, list: &str, id: &str) -> Result<ObservedAnswer, Defect> {
        self.put(&format!("{list}/{id}/close"), &json!({})).await
    }

    /// The lists whose ids can be closed.
    fn lists(&self) -> Result<Vec<&'static str>, Defect> {
        let lists = [("card", cards::LIST), ("pix", pix::LIST)];
        let lists: Vec<_> = lists.into_iter().filter(|(kind, _)| self.serves(kind)).map(|(_, list)| list).collect();
        if !self.capabilities.closes {
            return not_tested("closes is false");
        }
        if lists.is_empty() { not_tested("it serves neither card nor pix") } else { Ok(lists) }
    }

    /// Rule 10.
    pub(super) async fn keeps_what_it_carried_out(&self) -> Rule {
        if !self.lists()?.contains(&cards::LIST) {
            return not_tested("a PIX charge is carried out by its payer alone");
        }
        let id = self.ids.next();
        let (_, first) = self.ordered(cards::LIST, &id).await?;
        for _ in 0..2 {
            let seen = self.close(cards::LIST, &id).await?;
            seen.object(cards::LIST, AMOUNT)?;
            seen.same_as(&first)?;
        }
        self.get(&format!("{}/{id}", cards::LIST)).await?.same_as(&first)
    }

    /// Rule 11.
    pub(super) async fn closes_an_id(&self) -> Rule {
        for list in self.lists()? {
            let id = self.ids.next();
            for _ in 0..2 {
                self.close(list, &id).await?.closed()?;
            }
            self.get(&format!("{list}/{id}")).await?.closed()?;
        }
        Ok(())
    }

    /// Rule 12.
    pub(super) async fn carries_nothing_out_late(&self) -> Rule {
        for list in self.lists()? {
            let id = self.ids.next();
            self.close(list, &id).await?.closed()?;
            let path = format!("{list}/{id}");
            for _ in 0..2 {
                self.put(&path, &self.body(list)).await?.closed()?;
                self.get(&path).await?.closed()?;
            }
        }
        Ok(())
    }

    /// Rule 13.
    pub(super) async fn registers_pix(&self) -> Rule {
        if !self.serves("pix") {
            return not_tested("it does not serve pix");
        }
        let id = self.ids.next();
        let (body, _) = self.ordered(pix::LIST, &id).await?;
        self.lists()?;
        for _ in 0..2 {
            self.close(pix::LIST, &id).await?.closed()?;
        }
        let path = format!("{}/{id}", pix::LIST);
        self.put(&path, &body).await?.closed()?;
        self.get(&path).await?.closed()
    }
}
