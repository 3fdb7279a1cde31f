"""The tables of orders and effects."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("number", models.IntegerField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("job", models.CharField(max_length=36)),
            ],
        ),
        migrations.CreateModel(
            name="Effect",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.IntegerField()),
                ("job", models.CharField(max_length=36)),
                ("attempt", models.IntegerField()),
                ("fence", models.BigIntegerField()),
            ],
        ),
    ]
